// A HIP runtime that runs nothing and records everything, built as a shared library of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace zyfa::fake_hip {

struct Launch {
  std::string function;
  int device = -1;
  unsigned grid[3] = {}, block[3] = {}, shared = 0;
  void* stream = nullptr;
  std::vector<std::byte> kernargs;
  bool well_formed = false;  // no `params`; `extra` is the documented list
};

struct State {
  int device_count = 1;
  std::string architecture = "gfx950:sramecc+:xnack-";
  std::string known_function;  // empty: every name is found
  int current_device = 0;
  // The entry point that fails, with which error, and how often before it works.
  std::string failing_call;
  int failing_error = 0;
  int failures_left = 1 << 30;

  std::vector<int> set_devices;
  std::vector<Launch> launches;
  std::vector<void*> synchronized;
  std::vector<const void*> images;
  int modules_alive = 0, allocations_alive = 0;
};

}  // namespace zyfa::fake_hip

// Forgets everything and gives the state to set up or look at.
extern "C" __attribute__((visibility("default"))) zyfa::fake_hip::State* fake_hip_reset();
using FakeHipReset = zyfa::fake_hip::State* (*)();
