// draw(): the pictures are made in libzyfa_jit, where the cycle model is.
#include "zyfa/picture.h"

#include <utility>

#include "runtime/jit_loader.h"

namespace zyfa {

Expected<std::string> draw(const LaunchProfile& profile, Picture picture, const PictureOptions& options) {
  Expected<const JitService*> service = jit_service();
  if (!service) return tl::unexpected(std::move(service.error()));
  return (*service)->draw(profile, picture, options);
}

}  // namespace zyfa
