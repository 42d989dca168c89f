"""What a script does in place of `pinwise fleet report`: reads the nodes of a
fleet from the store and names those that depart.

Nodes are grouped by processor. A node is named for a setting that at most
5 % of its group have, or for a figure: where the modified z-score of its
logarithm is beyond 3.5 (Iglewicz and Hoaglin 1993), or, the other rule, where
it lies more than 3 standard deviations from the mean.

Usage: fleet.py STORE.db FLEET; prints {"modified_z": [nodes], "three_sigma": [nodes]}.
"""
import json
import math
import sqlite3
import statistics
import sys

RARE = 0.05


def main():
    store, fleet = sys.argv[1:3]
    rows = sqlite3.connect(store).execute(
        "SELECT body FROM record WHERE schema = 'pinwise.fleet-node/1' AND id >= ? AND id < ?",
        (fleet + ".", fleet + "/"),
    )
    groups = {}
    for (body,) in rows:
        node = json.loads(body)
        groups.setdefault(node["host"]["cpu_model"], []).append(node)
    modified, sigma = set(), set()
    for nodes in groups.values():
        rare = rare_settings(nodes)
        modified |= rare
        sigma |= rare
        figures = {}
        for node in nodes:
            for figure in node["figures"]:
                key = (figure["step"], figure["name"])
                figures.setdefault(key, []).append((node["node"], math.log(figure["value"])))
        for values in figures.values():
            depart(values, modified, sigma)
    print(json.dumps({"modified_z": sorted(modified), "three_sigma": sorted(sigma)}))


def rare_settings(nodes):
    counts = {}
    for node in nodes:
        for item in node["settings"].items():
            counts[item] = counts.get(item, 0) + 1
    most = RARE * len(nodes)
    return {
        node["node"]
        for node in nodes
        if any(counts[item] <= most for item in node["settings"].items())
    }


def depart(values, modified, sigma):
    numbers = [value for _, value in values]
    middle = statistics.median(numbers)
    mad = statistics.median(abs(number - middle) for number in numbers)
    mean = sum(numbers) / len(numbers)
    sd = math.sqrt(sum((number - mean) ** 2 for number in numbers) / max(len(numbers) - 1, 1))
    for node, value in values:
        if mad > 0 and 0.6745 * abs(value - middle) / mad > 3.5:
            modified.add(node)
        if sd > 0 and abs(value - mean) / sd > 3:
            sigma.add(node)


main()
