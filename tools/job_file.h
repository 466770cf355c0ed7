// A job file with what it names: the code object and its kernel.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/io/job.h"
#include "zyfa/inspect.h"

namespace zyfa::tools {

struct PreparedJob {
  io::Job job;
  std::vector<std::byte> object;
  ObjectKernel kernel;
};

// Errors of the files; kNotFound when the object has no such kernel (details: those it has).
[[nodiscard]] Expected<PreparedJob> prepare_job(const std::string& path);

}  // namespace zyfa::tools
