# The source of a Debian package as a folder, from where this machine has its
# packages; its own lists stay as they are.
debian_source() {
  mkdir -p lists/partial parts
  for list in /etc/apt/sources.list.d/*.sources; do
    sed 's/^Types:.*/Types: deb-src/' "$list"
    echo
  done >parts/all.sources 2>/dev/null
  cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
    sed -n 's/^deb /deb-src /p' >parts/all.list
  apt="-qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=$PWD/parts \
    -o Dir::State::Lists=$PWD/lists -o APT::Sandbox::User=root"
  apt-get $apt update >&2
  apt-get $apt source --download-only "$1" >&2
  mkdir "$2"
  tar -xf "$1"_*.orig.tar.* -C "$2" --strip-components 1
}
