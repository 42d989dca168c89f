# fastjsonschema and its pytest-benchmark suite; `oneOf` checks more than it must.
python3 -m venv python
python/bin/pip install -q pytest==8.4.2 pytest-benchmark==5.1.0 >&2
python/bin/pip download -q --no-deps --no-binary :all: fastjsonschema==2.22.3 >&2
tar -xzf fastjsonschema-*.tar.gz
mv fastjsonschema-*/ base
cp -r base head
python3 - <<'END'
import pathlib
path = pathlib.Path("head/fastjsonschema/draft04.py")
text = path.read_text()
once = "        self.l('{variable}_one_of_count{count} = 0', count=count)\n"
twice = "        self.l('isinstance({variable}, (int, float)) and isinstance({variable}, (int, float))')\n"
assert text.count(once) == 1
path.write_text(text.replace(once, once + twice))
END
cat >gate.suite.toml <<END
[[benchmark]]
adapter = "pytest"
run = "$PWD/python/bin/python -m pytest -p no:cacheprovider tests/benchmarks/test_benchmark.py --benchmark-max-time 0.2"
filter = "(ok_values.value0|bad_values.value0|bad_values.value3)"
environment = { PYTHONPATH = "." }
END
cat >size.sh <<'END'
(cd $1 && PYTHONPATH=. ../python/bin/python -m pytest -q -p no:cacheprovider \
  tests/benchmarks/test_benchmark.py --benchmark-max-time 1 --benchmark-json ../size.json \
  -k 'ok_values and value0') >&2
python3 -c 'import json; print(json.load(open("size.json"))["benchmarks"][0]["stats"]["min"])'
END
