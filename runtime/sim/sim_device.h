// The simulated gfx950 device (zyfa/device.h): memory, code objects, launches over threads, findings as data.
#pragma once

#include <memory>
#include <string>

#include "zyfa/device.h"

namespace zyfa::sim {

// Never fails for legal options; kInvalidArgument for 0 threads or 0 findings.
[[nodiscard]] Expected<std::shared_ptr<SimDevice>> make_sim_device(const SimOptions& options = {});

struct LaunchCapture;  // launch_capture.h

// What the last launch that recorded left; null when none did or it failed. Null for another kind of device.
[[nodiscard]] std::shared_ptr<const LaunchCapture> last_capture(const SimDevice& device);

// "memory-fault at +0x120 `global_load_dword ...`, workgroup (0, 0, 0), wave 1, lane 5: reads ... [origin]".
std::string to_string(const SimFinding& finding);

}  // namespace zyfa::sim
