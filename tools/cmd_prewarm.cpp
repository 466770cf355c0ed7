// zyfa-jit prewarm: fills the cache with the kernels of a shape file, without a GPU.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "runtime/io/shapes.h"
#include "tools/commands.h"
#include "zyfa/attention.h"

namespace zyfa::tools {
namespace {

constexpr int kMostFailures = 125;  // what an exit code can tell; shells use the values above

struct Options {
  OutputForm form = OutputForm::kText;
  std::string shapes;
  unsigned jobs = 0;
  CacheOptions cache;
};

struct Outcome {
  std::optional<AttentionInfo> info;
  std::optional<Error> error;
};

Outcome prewarm_one(const io::ShapeEntry& entry, const CacheOptions& cache) {
  const Expected<AttentionProblem> problem = parse_problem(entry.text);
  if (!problem) {
    return {{}, problem.error()};
  }
  const auto attention = Attention::compile(*problem, {.device = nullptr, .placement = {}, .cache = cache});
  if (!attention) {
    return {{}, attention.error()};
  }
  return {(*attention)->info(), {}};
}

// One line per problem as it ends; on a terminal also how far the whole is.
class Progress {
 public:
  Progress(std::size_t total, OutputForm form) : total_(total), form_(form) {}

  void finished(const io::ShapeEntry& entry, const Outcome& outcome) {
    const std::lock_guard lock(mutex_);
    ++done_;
    clear();
    if (outcome.error) {
      report(*outcome.error, OutputForm::kText, entry.location);
    } else if (form_ == OutputForm::kText) {
      fmt::print("{:<32} {:<7} {} {:8.1f} ms\n", to_string(outcome.info->problem),
                 kernel_source_name(outcome.info->source), outcome.info->key, outcome.info->times.total);
      std::fflush(stdout);
    }
    if (terminal_ && done_ < total_) {
      fmt::print(stderr, "[{}/{}]", done_, total_);
    }
  }

 private:
  void clear() const {
    if (terminal_) {
      fmt::print(stderr, "\r\033[K");
    }
  }

  std::mutex mutex_;
  std::size_t done_ = 0, total_;
  OutputForm form_;
  bool terminal_ = ::isatty(STDERR_FILENO) != 0;
};

std::vector<Outcome> prewarm_all(const std::vector<io::ShapeEntry>& entries, const Options& options) {
  std::vector<Outcome> outcomes(entries.size());
  Progress progress(entries.size(), options.form);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < entries.size(); i = next++) {
      outcomes[i] = prewarm_one(entries[i], options.cache);
      progress.finished(entries[i], outcomes[i]);
    }
  };
  const std::size_t jobs = options.jobs != 0 ? options.jobs : std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> helpers;
  for (std::size_t i = 1; i < std::min(jobs, entries.size()); ++i) {
    try {
      helpers.emplace_back(work);
    } catch (const std::system_error&) {
      break;  // the threads there are do the work
    }
  }
  work();
  for (std::thread& helper : helpers) {
    helper.join();
  }
  return outcomes;
}

OrderedJson to_json(const std::vector<io::ShapeEntry>& entries, const std::vector<Outcome>& outcomes,
                    std::uint64_t unpublished, double publish_ms) {
  OrderedJson problems = OrderedJson::array();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    OrderedJson row{{"problem", entries[i].text}, {"location", entries[i].location}};
    if (outcomes[i].info) {
      row["source"] = kernel_source_name(outcomes[i].info->source);
      row["key"] = outcomes[i].info->key;
      row["compile_ms"] = outcomes[i].info->times.total;
      if (!outcomes[i].info->helpers.empty()) {
        row["helper_keys"] = OrderedJson::array();
        for (const HelperKernel& helper : outcomes[i].info->helpers) {
          row["helper_keys"].push_back(helper.key);
        }
      }
    } else {
      row["error"] = tools::to_json(*outcomes[i].error);
    }
    problems.push_back(row);
  }
  return {{"problems", problems}, {"unpublished", unpublished}, {"publish_ms", publish_ms}};
}

int prewarm(const Options& options) {
  const Expected<std::vector<io::ShapeEntry>> entries = io::read_shapes(options.shapes);
  if (!entries) {
    return report(entries.error(), options.form);
  }
  if (entries->empty()) {
    return report({ErrorCode::kInvalidArgument, options.shapes + ": lists no problem, so nothing was built", {}},
                  options.form);
  }
  const std::vector<Outcome> outcomes = prewarm_all(*entries, options);
  if (const Status flushed = flush_cache(options.cache); !flushed) {
    return report(flushed.error(), options.form);
  }
  const Expected<CacheStatistics> statistics = cache_statistics(options.cache);
  if (!statistics) {
    return report(statistics.error(), options.form);
  }
  std::size_t failures = 0;
  for (const Outcome& outcome : outcomes) {
    failures += outcome.error ? 1 : 0;
  }
  const std::uint64_t unpublished = statistics->builds - std::min(statistics->builds, statistics->published);
  if (options.form == OutputForm::kJson) {
    print_json(to_json(*entries, outcomes, unpublished, statistics->publish_ms));
  } else {
    fmt::print("{}: {} built, {} read from the cache, {} failed; publishing, in the background: {:.1f} ms\n",
               counted(entries->size(), "problem"), statistics->builds, statistics->disk_hits, failures,
               statistics->publish_ms);
  }
  if (unpublished != 0) {
    report({ErrorCode::kIoError,
            counted(unpublished, "kernel") + " could not be written to the cache, so this process's work is lost",
            {"the cache must have a writable layer: see ZYFA_CACHE and ZYFA_CACHE_PATH"}},
           OutputForm::kText);
  }
  return static_cast<int>(std::min<std::uint64_t>(failures + unpublished, kMostFailures));
}

}  // namespace

void add_prewarm(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = add_command(
      app, "prewarm", "Builds the kernels of a shape file into the cache. Needs no GPU and no HIP library.",
      "  zyfa-jit prewarm --shapes shapes.txt -j 8\n"
      "  ZYFA_CACHE_PATH=/opt/kernels zyfa-jit prewarm --shapes shapes.txt     to ship in a container\n"
      "Shape file: one problem per line, '#' starts a comment; or a JSON array of such texts:\n"
      "  bf16,d=128,causal,lse      # training\n"
      "  bf16,d=128,causal          # prefill\n"
      "  bf16,d=128,causal,compute=fp8   # and the kernels that quantise for it\n"
      "Kernels are specialised for dtype, head dims, mask and outputs, not for batch, heads or lengths, so a few\n"
      "lines cover every shape.\n"
      "The exit code of prewarm counts the problems that failed (at most 125); an empty list is a failure.",
      options->form);
  command->add_option("--shapes", options->shapes, "Shape file")->required();
  command->add_option("-j,--jobs", options->jobs, "Builds at once. 0: one per core")
      ->check(CLI::Range(0U, 1024U))
      ->capture_default_str();
  command->add_option("--cache", options->cache.path, "Cache directories instead of ZYFA_CACHE_PATH");
  command->callback([options, &chosen] { chosen = [options] { return prewarm(*options); }; });
}

}  // namespace zyfa::tools
