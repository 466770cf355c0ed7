// Opens a page in headless Chromium. Screenshots stay in screenshots/ of the build tree, to look at.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/correctness/tools/command.h"
#include "tests/require_tools.h"
#include "tests/unit/picture/png.h"

namespace zyfa::sim_test {

// Chromium logs a message of a page's console as INFO:CONSOLE.
inline constexpr const char* kConsole = "CONSOLE";

class BrowserTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kWidth = 1600, kHeight = 900;

  void SetUp() override {
    if (session_.command("chromium", {"--version"}).exit_code != 0) ZYFA_SKIP_WITHOUT_TOOL("chromium is not installed");
    std::filesystem::create_directories(kFolder);
  }

  // What the page's elements are once it is loaded (out), and what it complained of (err).
  tools::testing_support::Result dom(const std::string& page) { return chromium("--dump-dom", page, kHeight); }

  Image screenshot(const std::string& name, const std::string& page, std::uint32_t height = kHeight) {
    const std::string file = std::string(kFolder) + "/" + name + ".png";
    std::filesystem::remove(file);
    const tools::testing_support::Result result = chromium("--screenshot=" + file, page, height);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const auto image = read_png(tools::testing_support::get_file(file));
    EXPECT_TRUE(image) << result.err;
    return image.value_or(Image{});
  }

  tools::testing_support::Session session_;

 private:
  static constexpr const char* kFolder = ZYFA_BUILD_DIR "/screenshots";

  // The tests' own pages only, so the sandbox, which containers and root lack, is off.
  tools::testing_support::Result chromium(const std::string& action, const std::string& page, std::uint32_t height) {
    tools::testing_support::put_file(session_ / "page.html", page);
    return session_.command(
        "chromium",
        {"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
         "--force-device-scale-factor=1", "--enable-logging=stderr",
         "--window-size=" + std::to_string(kWidth) + "," + std::to_string(height),
         "--user-data-dir=" + (session_ / "profile").string(), action, "file://" + (session_ / "page.html").string()});
  }
};

}  // namespace zyfa::sim_test
