# fancy-regex and its criterion benchmarks; every 33rd match is made twice. The
# base counts its matches, too, so that both are laid out alike.
mkdir -p fetch/src
: >fetch/src/lib.rs
cat >fetch/Cargo.toml <<END
[package]
name = "fetch"
version = "0.1.0"
edition = "2021"
[dependencies]
fancy-regex = "=0.14.0"
[workspace]
END
source=$(cargo metadata --quiet --format-version 1 --manifest-path fetch/Cargo.toml |
  python3 -c 'import json, sys
print(*(p["manifest_path"] for p in json.load(sys.stdin)["packages"] if p["name"] == "fancy-regex"))')
cp -r "$(dirname "$source")" base
rm -f base/Cargo.toml.orig
printf '\n[workspace]\n' >>base/Cargo.toml
cp base/Cargo.toml fetch/Cargo.toml
cp -r base head
python3 - <<'END'
import pathlib
once = "    run(prog, s, pos, 0, &RegexOptions::default())\n"
for build, every in ("base", "4_000_000_007"), ("head", "33"):
    path = pathlib.Path(build, "src/vm.rs")
    text = path.read_text()
    twice = f"""    static CALLS: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(0);
    let calls = CALLS.load(core::sync::atomic::Ordering::Relaxed).wrapping_add(1);
    CALLS.store(calls, core::sync::atomic::Ordering::Relaxed);
    if calls % {every} == 0 {{
        let _ = run(prog, s, pos, 0, &RegexOptions::default());
    }}
"""
    assert text.count(once) == 1
    path.write_text(text.replace(once, twice + once))
END
# A folder each: in one, cargo takes the second for the first.
for build in base head; do
  binary=$(cd $build && CARGO_TARGET_DIR="$PWD/target" cargo bench --quiet --bench bench --no-run --message-format json |
    python3 -c 'import json, sys
lines = map(json.loads, sys.stdin)
print(*(l["executable"] for l in lines if l.get("executable") and "bench" in l["target"]["kind"]))')
  cp "$binary" $build/bench
done
cat >gate.suite.toml <<'END'
[[benchmark]]
adapter = "criterion"
run = "./bench --warm-up-time 0.2 --measurement-time 0.4 --sample-size 20"
filter = "^(run_tricky|analyze_literal_re|parse_lifetime_re)$"
END
cat >peer.sh <<'END'
# What criterion's own comparison calls slower; it warms up for 1 s, not 10.
rm -rf criterion
for build in $1 $2; do
  option=--save-baseline
  test $build = $2 && option=--baseline
  (cd $build && CRITERION_HOME=../criterion ./bench --bench --noplot --color never \
    --warm-up-time 1 $option base '^(run_tricky|analyze_literal_re|parse_lifetime_re)$') 2>&1
done | awk '/time:/ { name = $1 } /Performance has regressed/ { print name }'
END
cat >size.sh <<'END'
(cd $1 && CRITERION_HOME=../size ./bench --bench --noplot --warm-up-time 0.2 \
  --measurement-time 1 --save-baseline size '^run_tricky$') >&2
python3 -c 'import json
sample = json.load(open("size/run_tricky/size/sample.json"))
print(min(time / count for time, count in zip(sample["times"], sample["iters"])))'
END
