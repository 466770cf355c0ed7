// Text from kernels and users, made safe for element content and quoted attributes of an HTML page.
#pragma once

#include <string>
#include <string_view>

namespace zyfa::sim::picture {

// Escapes & < > " and '; control characters but newline and tab, which no HTML may hold, become U+FFFD.
std::string html_text(std::string_view text);

}  // namespace zyfa::sim::picture
