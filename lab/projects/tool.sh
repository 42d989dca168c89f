# lz4, a command-line tool in C; every 32nd block of its slow compression is made twice.
debian_source lz4 base
cp -r base head
python3 - <<'END'
import pathlib
path = pathlib.Path("head/lib/lz4frame.c")
text = path.read_text()
once = "    return LZ4_compress_HC_extStateHC_fastReset(ctx, src, dst, srcSize, dstCapacity, level);\n"
twice = """    {   static unsigned calls = 0;
        if (++calls % 32 == 0)
            LZ4_compress_HC_extStateHC_fastReset(ctx, src, dst, srcSize, dstCapacity, level);
    }
"""
assert text.count(once) == 1
path.write_text(text.replace(once, twice + once))
END
for build in base head; do
  make -s -C $build/programs lz4 >&2
done
# 64 blocks of 64 KiB.
while :; do cat base/lib/*.[ch] base/programs/*.[ch]; done 2>/dev/null | head -c 4194304 >text
for build in base head; do
  cp text $build/text
  base/programs/lz4 -q -1 -B4 -c text >$build/text.lz4
done
cat >gate.suite.toml <<'END'
[[benchmark]]
name = "slow"
run = "programs/lz4 -q -9 -B4 -c text"

[[benchmark]]
name = "fast"
run = "programs/lz4 -q -1 -B4 -c text"

[[benchmark]]
name = "check"
run = "programs/lz4 -q -t text.lz4"
END
cat >peer.sh <<'END'
# hyperfine at its default lengths; what the times mean is judged by the caller.
rm -rf times
mkdir times
compare() {
  hyperfine -N --export-json times/$1.json \
    "$base/programs/lz4 -q $2" "$head/programs/lz4 -q $2" >&2
}
base=$1
head=$2
compare slow "-9 -B4 -c base/text"
compare fast "-1 -B4 -c base/text"
compare check "-t base/text.lz4"
END
cat >size.sh <<'END'
python3 - $1 <<'PY'
import os, subprocess, sys
def cpu_s():
    command = [f"{sys.argv[1]}/programs/lz4", "-q", "-9", "-B4", "-c", "base/text"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    usage = os.wait4(process.pid, 0)[2]
    return usage.ru_utime + usage.ru_stime
print(min(cpu_s() for _ in range(20)))
PY
END
