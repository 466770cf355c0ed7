#include "schedules/select/placement.h"

#include <cctype>
#include <limits>
#include <set>

namespace zyfa::schedules {
namespace {

constexpr std::uint32_t kMaxBuffers = 8;
constexpr std::uint32_t kMaxTrip = 2;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Expected<Placement> parse() {
    skip_space();
    while (at_ < text_.size()) {
      if (Status s = clause(); !s) return tl::unexpected(s.error());
      skip_space();
      if (at_ == text_.size()) break;
      if (!take(';')) return fail("';' or the end");
      skip_space();
    }
    return finish();
  }

 private:
  Expected<Placement> finish() {
    if (placement_.name.empty()) return missing("name=<identifier>");
    if (placement_.loop.empty()) return missing("loop=<phases>");
    if (!placement_.priorities.empty() && placement_.priorities.size() != placement_.loop.size()) {
      return make_error(ErrorCode::kScheduleError,
                        "placement '" + placement_.name + "': prio has " +
                            std::to_string(placement_.priorities.size()) + " values, the loop has " +
                            std::to_string(placement_.loop.size()) + " phases; give one each");
    }
    return std::move(placement_);
  }

  static tl::unexpected<Error> missing(std::string_view clause) {
    return make_error(ErrorCode::kScheduleError, "placement lacks the clause " + std::string(clause));
  }

  tl::unexpected<Error> fail(std::string_view expected) const {
    const std::string found =
        at_ < text_.size() ? "'" + std::string(text_.substr(at_, 12)) + "'" : std::string("the end of the text");
    return make_error(ErrorCode::kScheduleError, "placement text, position " + std::to_string(at_) + ": expected " +
                                                     std::string(expected) + ", found " + found);
  }

  void skip_space() {
    while (at_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
        ++at_;
      } else if (text_[at_] == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else {
        return;
      }
    }
  }

  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Expected<std::string> identifier() {
    skip_space();
    const std::size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    if (start == at_ || std::isdigit(static_cast<unsigned char>(text_[start])) != 0) {
      at_ = start;
      return fail("an identifier (letters, digits, '_')");
    }
    return std::string(text_.substr(start, at_ - start));
  }

  Expected<std::uint32_t> integer(std::uint32_t low, std::uint32_t high, std::string_view what) {
    skip_space();
    const std::size_t start = at_;
    std::uint64_t value = 0;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0 && at_ - start < 9) {
      value = value * 10 + static_cast<std::uint64_t>(text_[at_++] - '0');
    }
    if (start == at_ || value < low || value > high) {
      at_ = start;
      return fail(std::string(what) + " from " + std::to_string(low) + " to " + std::to_string(high));
    }
    return static_cast<std::uint32_t>(value);
  }

  Status clause() {
    const std::size_t start = at_;
    Expected<std::string> key = identifier();
    if (!key) return tl::unexpected(key.error());
    if (!seen_.insert(*key).second) {
      at_ = start;
      return fail("a clause not given before");
    }
    if (!take('=')) return fail("'='");
    if (*key == "name") return assign(placement_.name, identifier());
    if (*key == "waves") return waves();
    if (*key == "queries") return queries();
    if (*key == "groups") return assign(placement_.groups, integer(1, 2, "groups"));
    if (*key == "trip") return assign(placement_.trip, integer(1, kMaxTrip, "iterations of a trip"));
    if (*key == "buffers") return buffers(placement_.buffers, *key);
    if (*key == "before_buffers") return buffers(placement_.before_buffers, *key);
    if (*key == "loop") return loop(placement_.loop);
    if (*key == "before") return loop(placement_.before);
    if (*key == "prio") return priorities();
    if (*key == "math") return math();
    at_ = start;
    return fail("one of name, waves, queries, groups, trip, buffers, before_buffers, before, loop, prio, math");
  }

  template <typename T>
  static Status assign(T& to, Expected<T> from) {
    if (!from) return tl::unexpected(from.error());
    to = std::move(*from);
    return {};
  }

  Status waves() {
    const std::size_t start = at_;
    Expected<std::uint32_t> n = integer(1, 8, "waves");
    if (!n) return tl::unexpected(n.error());
    if ((*n & (*n - 1)) != 0) {
      at_ = start;
      return fail("waves 1, 2, 4 or 8");
    }
    placement_.waves = *n;
    return {};
  }

  Status queries() {
    const std::size_t start = at_;
    const Expected<std::uint32_t> n = integer(32, 64, "queries");
    if (!n || (*n != 32 && *n != 64)) {
      at_ = start;
      return fail("queries 32 or 64");
    }
    placement_.queries = *n;
    return {};
  }

  Status buffers(std::map<std::string, std::uint32_t>& to, const std::string& clause) {
    do {
      Expected<std::string> tile = identifier();
      if (!tile) return tl::unexpected(tile.error());
      if (!take(':')) return fail("':' and a number of buffers");
      Expected<std::uint32_t> n = integer(1, kMaxBuffers, "buffers");
      if (!n) return tl::unexpected(n.error());
      if (to.contains(*tile)) return fail("each tile once in " + clause + "=");
      to[*tile] = *n;
    } while (take(','));
    std::erase_if(to, [](const auto& entry) { return entry.second == 1; });
    return {};
  }

  Status priorities() {
    do {
      Expected<std::uint32_t> n = integer(0, 3, "a priority");
      if (!n) return tl::unexpected(n.error());
      placement_.priorities.push_back(*n);
    } while (take(','));
    return {};
  }

  Status math() {
    const std::size_t start = at_;
    Expected<std::string> word = identifier();
    if (!word) return tl::unexpected(word.error());
    if (*word != "packed" && *word != "scalar") {
      at_ = start;
      return fail("packed or scalar");
    }
    placement_.math = *word == "packed" ? VectorMath::kPacked : VectorMath::kScalar;
    return {};
  }

  Status loop(std::vector<Phase>& to) {
    do {
      Phase phase;
      do {
        Expected<PhaseItem> parsed = item();
        if (!parsed) return tl::unexpected(parsed.error());
        phase.items.push_back(std::move(*parsed));
      } while (take(','));
      to.push_back(std::move(phase));
    } while (take('|'));
    return {};
  }

  Expected<PhaseItem> item() {
    PhaseItem result;
    if (!take('{')) {
      Expected<StageRef> ref = stage();
      if (!ref) return tl::unexpected(ref.error());
      result.streams.push_back({{std::move(*ref)}, 1});
      return result;
    }
    result.paced = take('=');
    do {
      Expected<Stream> parsed = stream();
      if (!parsed) return tl::unexpected(parsed.error());
      result.streams.push_back(std::move(*parsed));
    } while (take('/'));
    if (!take('}')) return fail("',', ':', '/' or '}'");
    if (result.streams.size() < 2) return fail("at least two streams between '{' and '}'");
    return result;
  }

  Expected<Stream> stream() {
    Stream result;
    do {
      Expected<StageRef> ref = stage();
      if (!ref) return tl::unexpected(ref.error());
      result.stages.push_back(std::move(*ref));
    } while (take(','));
    if (take(':')) {
      Expected<std::uint32_t> weight = integer(1, 64, "a weight");
      if (!weight) return tl::unexpected(weight.error());
      result.weight = *weight;
    }
    return result;
  }

  Expected<StageRef> stage() {
    Expected<std::string> id = identifier();
    if (!id) return tl::unexpected(id.error());
    StageRef ref{std::move(*id), 0};
    if (take('@')) {
      Expected<std::uint32_t> lead = integer(0, 8, "a lead");
      if (!lead) return tl::unexpected(lead.error());
      ref.lead = *lead;
    }
    return ref;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Placement placement_;
  std::set<std::string> seen_;
};

template <typename Range, typename Print>
std::string join(const Range& range, std::string_view separator, Print print) {
  std::string text;
  for (const auto& element : range) {
    if (!text.empty()) text += separator;
    text += print(element);
  }
  return text;
}

std::string unparse_stage(const StageRef& ref) {
  return ref.lead == 0 ? ref.stage : ref.stage + "@" + std::to_string(ref.lead);
}

std::string unparse_stream(const Stream& stream) {
  return join(stream.stages, ",", unparse_stage) + (stream.weight == 1 ? "" : ":" + std::to_string(stream.weight));
}

std::string unparse_buffers(std::string_view clause, std::map<std::string, std::uint32_t> counts) {
  std::erase_if(counts, [](const auto& entry) { return entry.second == 1; });
  if (counts.empty()) return {};
  return ";" + std::string(clause) + "=" +
         join(counts, ",", [](const auto& b) { return b.first + ":" + std::to_string(b.second); });
}

std::string unparse_item(const PhaseItem& item) {
  if (item.streams.size() == 1) return join(item.streams.front().stages, ",", unparse_stage);
  return (item.paced ? "{=" : "{") + join(item.streams, "/", unparse_stream) + "}";
}

std::string unparse_loop(const std::vector<Phase>& loop) {
  return join(loop, "|", [](const Phase& p) { return join(p.items, ",", unparse_item); });
}

}  // namespace

Expected<Placement> parse_placement(std::string_view text) { return Parser(text).parse(); }

std::string unparse(const Placement& placement) {
  std::string text = "name=" + placement.name + ";waves=" + std::to_string(placement.waves);
  if (placement.queries != 32) text += ";queries=" + std::to_string(placement.queries);
  text += ";groups=" + std::to_string(placement.groups);
  if (placement.trip != 1) text += ";trip=" + std::to_string(placement.trip);
  text += unparse_buffers("buffers", placement.buffers);
  text += unparse_buffers("before_buffers", placement.before_buffers);
  if (!placement.before.empty()) text += ";before=" + unparse_loop(placement.before);
  text += ";loop=" + unparse_loop(placement.loop);
  if (!placement.priorities.empty()) {
    text += ";prio=" + join(placement.priorities, ",", [](std::uint32_t p) { return std::to_string(p); });
  }
  if (placement.math == VectorMath::kScalar) text += ";math=scalar";
  return text;
}

}  // namespace zyfa::schedules
