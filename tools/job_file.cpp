#include "tools/job_file.h"

#include <span>
#include <utility>

#include "runtime/io/file.h"

namespace zyfa::tools {
namespace {

// The job's kernel among those of its object.
Expected<ObjectKernel> kernel_of(const io::Job& job, std::span<const std::byte> object) {
  Expected<ObjectInfo> info = describe_object(object);
  if (!info) {
    return tl::unexpected<Error>(info.error());
  }
  std::vector<std::string> names;
  for (ObjectKernel& kernel : info->kernels) {
    if (kernel.symbol == job.kernel) {
      return std::move(kernel);
    }
    names.push_back("it has " + kernel.symbol);
  }
  return make_error(ErrorCode::kNotFound, "no kernel '" + job.kernel + "' in the code object", std::move(names));
}

}  // namespace

Expected<PreparedJob> prepare_job(const std::string& path) {
  Expected<io::Job> job = io::read_job(path);
  if (!job) {
    return tl::unexpected<Error>(job.error());
  }
  Expected<std::vector<std::byte>> object = io::read_file(job->object);
  if (!object) {
    return tl::unexpected<Error>(object.error());
  }
  Expected<ObjectKernel> kernel = kernel_of(*job, *object);
  if (!kernel) {
    Error error = kernel.error();
    error.message = job->object.string() + ": " + error.message;
    return tl::unexpected<Error>(std::move(error));
  }
  return PreparedJob{*std::move(job), *std::move(object), *std::move(kernel)};
}

}  // namespace zyfa::tools
