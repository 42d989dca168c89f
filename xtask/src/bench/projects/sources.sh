# The source of a Debian package as a folder; this machine's own list of
# packages stays as it is.
debian_source() {
  mkdir -p lists/partial
  echo "deb-src http://deb.debian.org/debian bookworm main" >sources.list
  apt="-qq -o Dir::Etc::SourceList=$PWD/sources.list -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::State::Lists=$PWD/lists -o APT::Sandbox::User=root"
  apt-get $apt update >&2
  apt-get $apt source --download-only "$1" >&2
  mkdir "$2"
  tar -xf "$1"_*.orig.tar.* -C "$2" --strip-components 1
}
