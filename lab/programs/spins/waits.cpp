// Ways to wait in C++. Usage: waits WAY SECONDS
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <map>
#include <mutex>
#include <queue>
#include <string>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <thread>
#include <unistd.h>

static std::atomic<bool> over{false};
static std::atomic_flag taken = ATOMIC_FLAG_INIT;
static std::mutex held, guard;
static std::queue<int> queues[4];

static void test_and_set() { while (taken.test_and_set(std::memory_order_acquire) && !over) {} }
static void yields() { while (!over) std::this_thread::yield(); }
static void exchange() {
  static std::atomic<int> lock{1};
  for (int free = 0; !lock.compare_exchange_weak(free, 1) && !over; free = 0) {}
}
static void try_lock() { while (!over && !held.try_lock()) {} }
static void future() {
  std::promise<int> never;
  auto result = never.get_future();
  while (!over && result.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {}
}
static void deadline() {
  auto end = std::chrono::steady_clock::now() + std::chrono::hours(1);
  while (!over && std::chrono::steady_clock::now() < end) {}
}
static void locked_look() {
  static bool ready;
  for (;;) {
    std::lock_guard<std::mutex> own(guard);
    if (ready || over) return;
  }
}
static void queues_in_turn() {
  for (unsigned turn = 0; !over; turn++) {
    auto &queue = queues[turn % 4];
    if (!queue.empty()) queue.pop();
  }
}
static void naps() { while (!over) std::this_thread::sleep_for(std::chrono::nanoseconds(1)); }
static void select_empty() {
  int ends[2];
  if (pipe(ends)) return;
  for (timeval none{}; !over; none = {}) {
    fd_set one;
    FD_ZERO(&one);
    FD_SET(ends[0], &one);
    if (select(ends[0] + 1, &one, nullptr, nullptr, &none)) return;
  }
}
static void readable_bytes() {
  int ends[2], bytes = 0;
  if (pipe(ends)) return;
  while (!over && bytes == 0) ioctl(ends[0], FIONREAD, &bytes);
}

int main(int, char **argv) {
  std::map<std::string, void (*)()> ways = {
      {"test_and_set", test_and_set}, {"yields", yields}, {"exchange", exchange},
      {"try_lock", try_lock}, {"future", future}, {"deadline", deadline},
      {"locked_look", locked_look}, {"queues_in_turn", queues_in_turn}, {"naps", naps},
      {"select_empty", select_empty}, {"readable_bytes", readable_bytes},
  };
  taken.test_and_set();
  held.lock();
  std::thread waiter(ways.at(argv[1]));
  usleep(1000000 * atof(argv[2]));
  over = true;
  waiter.join();
}
