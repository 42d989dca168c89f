# snappy and its Google Benchmark suite; every 33rd compression is made
# twice. The base counts them, too, so that both are laid out alike.
debian_source snappy base
cp -r base head
python3 - <<'END'
import pathlib
once = """  ByteArraySource reader(input, input_length);
  UncheckedByteArraySink writer(compressed);
  Compress(&reader, &writer);

  // Compute"""
for build, every in ("base", 4000000007), ("head", 33):
    path = pathlib.Path(build, "snappy.cc")
    text = path.read_text()
    twice = f"""  static unsigned calls = 0;
  if (++calls % {every}u == 0) {{
    ByteArraySource reader(input, input_length);
    UncheckedByteArraySink writer(compressed);
    Compress(&reader, &writer);
  }}
"""
    assert text.count(once) == 1
    path.write_text(text.replace(once, twice + once))
END
for build in base head; do
  (
    cd $build
    cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DSNAPPY_BUILD_TESTS=OFF \
      -DSNAPPY_BUILD_BENCHMARKS=OFF -DHAVE_LIBZ=0 -DHAVE_LIBLZO2=0 -DHAVE_LIBLZ4=0
    cmake --build build
    g++ -O2 -DNDEBUG -DHAVE_CONFIG_H -I. -Ibuild snappy_benchmark.cc snappy_test_data.cc \
      snappy-test.cc build/libsnappy.a -lbenchmark -lbenchmark_main -lpthread -o bench
  ) >&2
done
cat >gate.suite.toml <<'END'
[[benchmark]]
adapter = "google-benchmark"
run = "./bench --benchmark_min_time=0.2"
filter = "^(BM_ZFlat|BM_UFlat|BM_UValidate)/0$"
END
cat >size.sh <<'END'
(cd $1 && ./bench --benchmark_filter='^BM_ZFlat/0$' --benchmark_repetitions=20 \
  --benchmark_min_time=0.05 --benchmark_format=csv) |
  awk -F, '$1 ~ /ZFlat\/0"$/ { print $4 }' | sort -g | head -n 1
END
