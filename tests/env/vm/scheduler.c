// Loads a sched_ext scheduler that has a name and no code of its own, so that the kernel's
// defaults do its work, until it is ended:
//
//   scheduler NAME
//
// The kernel's types (BTF) say where the name belongs, so nothing is compiled for one kernel, and
// no compiler for BPF is needed.
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// Newer than the headers of Debian 12.
enum { F_LINK = 1 << 13, STRUCT_OPS = 44 };

static void give_up(const char *what) {
  perror(what);
  exit(1);
}

static char *read_types(void) {
  int file = open("/sys/kernel/btf/vmlinux", O_RDONLY);
  size_t room = 64 << 20, size = 0;
  char *types = malloc(room);
  ssize_t count = file < 0 || !types ? -1 : 0;
  while (count >= 0 && size < room && (count = read(file, types + size, room - size)) > 0)
    size += count;
  if (count < 0) give_up("/sys/kernel/btf/vmlinux");
  return types;
}

// The bytes behind a type that say what is in it.
static size_t tail_of(const struct btf_type *type) {
  unsigned count = BTF_INFO_VLEN(type->info);
  switch (BTF_INFO_KIND(type->info)) {
  case BTF_KIND_INT: case BTF_KIND_VAR: case BTF_KIND_DECL_TAG: return 4;
  case BTF_KIND_ARRAY: return sizeof(struct btf_array);
  case BTF_KIND_STRUCT: case BTF_KIND_UNION: return count * sizeof(struct btf_member);
  case BTF_KIND_ENUM: return count * sizeof(struct btf_enum);
  case BTF_KIND_FUNC_PROTO: return count * sizeof(struct btf_param);
  case BTF_KIND_DATASEC: return count * sizeof(struct btf_var_secinfo);
  case BTF_KIND_ENUM64: return count * sizeof(struct btf_enum64);
  default: return 0;
  }
}

// The struct of this name; its number in `id`.
static const struct btf_type *find(const char *types, const char *name, unsigned *id) {
  const struct btf_header *header = (const void *)types;
  const char *at = types + header->hdr_len + header->type_off;
  const char *end = at + header->type_len;
  const char *names = types + header->hdr_len + header->str_off;
  for (*id = 1; at < end; ++*id) {
    const struct btf_type *type = (const void *)at;
    if (BTF_INFO_KIND(type->info) == BTF_KIND_STRUCT && !strcmp(names + type->name_off, name))
      return type;
    at += sizeof *type + tail_of(type);
  }
  fprintf(stderr, "scheduler: this kernel has no %s (CONFIG_SCHED_CLASS_EXT)\n", name);
  exit(2);
}

// Where a member lies, bytes.
static unsigned offset(const char *types, const struct btf_type *type, const char *name) {
  const struct btf_header *header = (const void *)types;
  const char *names = types + header->hdr_len + header->str_off;
  const struct btf_member *members = (const void *)(type + 1);
  for (unsigned n = 0; n < BTF_INFO_VLEN(type->info); n++)
    if (!strcmp(names + members[n].name_off, name))
      return (BTF_INFO_KFLAG(type->info) ? BTF_MEMBER_BIT_OFFSET(members[n].offset) : members[n].offset) / 8;
  fprintf(stderr, "scheduler: this kernel has no member %s\n", name);
  exit(2);
}

static int bpf(enum bpf_cmd command, union bpf_attr *attr, const char *what) {
  long result = syscall(SYS_bpf, command, attr, sizeof *attr);
  if (result < 0) give_up(what);
  return result;
}

// Types of a program's own, which every map names; one is enough.
static int load_own_types(void) {
  static const char names[] = "\0int";
  struct {
    struct btf_header header;
    struct btf_type type;
    unsigned encoding;
    char names[sizeof names];
  } own = {.header = {.magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof own.header,
                      .type_len = sizeof own.type + 4, .str_off = sizeof own.type + 4, .str_len = sizeof names},
           .type = {.name_off = 1, .info = BTF_KIND_INT << 24, .size = 4},
           .encoding = 32};
  memcpy(own.names, names, sizeof names);
  union bpf_attr load = {.btf = (unsigned long)&own,
                         .btf_size = sizeof own.header + sizeof own.type + 4 + sizeof names};
  return bpf(BPF_BTF_LOAD, &load, "loading types");
}

int main(int count, char **words) {
  if (count != 2) return 64;
  const char *types = read_types();
  unsigned id, own;
  const struct btf_type *value = find(types, "bpf_struct_ops_sched_ext_ops", &id);
  const struct btf_type *ops = find(types, "sched_ext_ops", &own);
  char *bytes = calloc(1, value->size);
  snprintf(bytes + offset(types, value, "data") + offset(types, ops, "name"), 64, "%s", words[1]);

  union bpf_attr map = {.map_type = BPF_MAP_TYPE_STRUCT_OPS, .key_size = 4, .value_size = value->size,
                        .max_entries = 1, .map_flags = F_LINK, .btf_fd = load_own_types(),
                        .btf_vmlinux_value_type_id = id};
  strcpy(map.map_name, "scheduler");
  int fd = bpf(BPF_MAP_CREATE, &map, "creating the map");
  unsigned key = 0;
  union bpf_attr element = {.map_fd = fd, .key = (unsigned long)&key, .value = (unsigned long)bytes};
  bpf(BPF_MAP_UPDATE_ELEM, &element, "filling the map");
  union bpf_attr link = {.link_create = {.prog_fd = fd, .attach_type = STRUCT_OPS}};
  // The scheduler stays as long as somebody holds the link.
  bpf(BPF_LINK_CREATE, &link, "loading the scheduler");
  for (;;) pause();
}
