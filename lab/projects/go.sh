# regexp2 and its Go benchmarks; every 33rd match of runes is made twice.
mkdir fetch
printf 'module fetch\ngo 1.21\n' >fetch/go.mod
source=$(cd fetch && go mod download -json github.com/dlclark/regexp2@v1.11.5 |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])')
cp -r "$source" base
chmod -R u+w base
cp -r base head
python3 - <<'END'
import pathlib
path = pathlib.Path("head/regexp.go")
text = path.read_text()
once = "	m, err := re.run(true, -1, r)\n"
twice = """	calls++
	if calls%33 == 0 {
		_, _ = re.run(true, -1, r)
	}
"""
assert text.count(once) == 1
path.write_text(text.replace(once, twice + once) + "\nvar calls uint32\n")
END
for build in base head; do
  (cd $build && go test -c -o bench .)
done
cat >gate.suite.toml <<'END'
[[benchmark]]
adapter = "go"
run = "./bench -test.benchtime 200ms"
filter = "^Benchmark(MatchHard_1K|MatchClass|OnePassShortA)$"
END
cat >peer.sh <<'END'
# What benchstat calls slower: ten runs of each build, one build after the other.
GOBIN=$PWD/bin go install golang.org/x/perf/cmd/benchstat@latest >&2
for build in $1 $2; do
  (cd $build && ./bench -test.run '^$' -test.count 10 -test.benchtime 300ms \
    -test.bench '^Benchmark(MatchHard_1K|MatchClass|OnePassShortA)$') >$build.txt
done
bin/benchstat -format csv $1.txt $2.txt | awk -F, '
  /vs base/ { is_time = /sec\/op/ }
  is_time && $7 ~ /^p=/ && $6 ~ /^\+/ { sub(/-[0-9]+$/, "", $1); print "Benchmark" $1 }'
END
cat >size.sh <<'END'
(cd $1 && ./bench -test.run '^$' -test.bench '^BenchmarkMatchHard_1K$' -test.benchtime 99x \
  -test.count 20) | awk '/ns\/op/ { print $3 }' | sort -g | head -n 1
END
