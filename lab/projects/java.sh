# commons-csv and its JMH benchmarks, on the first 20,000 lines of their file
# and without the other libraries; some records are read twice.
version=1.10.0
here=$PWD
maven() { mvn -q -B -Dmaven.repo.local="$here/maven" "$@" >&2; }
for artifact in org.openjdk.jmh:jmh-core:1.37 org.openjdk.jmh:jmh-generator-annprocess:1.37 \
  commons-io:commons-io:2.11.0 org.apache.commons:commons-lang3:3.12.0 \
  org.apache.commons:commons-csv:$version:jar:sources \
  org.apache.commons:commons-csv:$version:jar:test-sources; do
  maven dependency:get -Dartifact=$artifact
done
jars=$(find "$here/maven" -name 'jmh-*.jar' -o -name 'jopt-simple-*.jar' -o -name 'commons-math3-*.jar' \
  -o -name 'commons-io-2.11.0.jar' -o -name 'commons-lang3-3.12.0.jar' | tr '\n' :)
mkdir base
(
  cd base
  for kind in sources test-sources; do
    unzip -qo "$(find "$here/maven" -name commons-csv-$version-$kind.jar)" 'org/*'
  done
  rm -r org/apache/commons/csv/*Test.java org/apache/commons/csv/issues \
    org/apache/commons/csv/perf/*.java org/apache/commons/csv/TokenMatchers.java \
    org/apache/commons/csv/Utils.java
  cd org/apache/commons/csv
  gzip -dc perf/worldcitiespop.txt.gz | head -n 20000 | gzip >perf/cut
  mv perf/cut perf/worldcitiespop.txt.gz
  python3 - <<'END'
import pathlib, re
path = pathlib.Path("CSVBenchmark.java")
text = path.read_text()
head, tail = text.split("    @Benchmark\n    public int parseGenJavaCSV", 1)
text = re.sub(r"import (com|org\.supercsv)\..*\n", "", head) + "}\n"
path.write_text(text)
END
)
cp -r base head
python3 - <<'END'
import pathlib
path = pathlib.Path("head/org/apache/commons/csv/CSVParser.java")
text = path.read_text()
once = "            this.recordNumber++;\n"
twice = """            if (this.recordNumber % 60 == 0) {
                final String line = String.join(",", this.recordList) + "\\n";
                final Lexer again = new Lexer(this.format,
                    new ExtendedBufferedReader(new StringReader(line)));
                final Token token = new Token();
                do {
                    token.reset();
                    again.nextToken(token);
                } while (token.type == TOKEN);
            }
"""
assert text.count(once) == 1
path.write_text(text.replace(once, twice + once))
END
for build in base head; do
  (
    cd $build
    mkdir classes
    javac -nowarn -cp "$jars" -d classes org/apache/commons/csv/*.java >&2
    cp -r org classes/
    printf 'Main-Class: org.openjdk.jmh.Main\nClass-Path:' >manifest
    for jar in $(echo "$jars" | tr : ' '); do printf ' file:%s\n ' "$jar"; done >>manifest
    echo >>manifest
    jar cfm bench.jar manifest -C classes . >&2
  )
done
cat >gate.suite.toml <<'END'
[[benchmark]]
adapter = "jmh"
run = "java -jar bench.jar -f 1 -wi 6 -i 3 -w 100ms -r 100ms"
filter = "(parseCommonsCSV|split)$"
END
cat >size.sh <<'END'
(cd $1 && java -jar bench.jar -f 1 -wi 10 -i 20 -w 200ms -r 100ms parseCommonsCSV) |
  sed -n 's/.*(min, avg, max) = (\([0-9.]*\),.*/\1/p'
END
