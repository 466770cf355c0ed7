// Wrong usage of every subcommand: a sentence on stderr that starts with "zyfa-jit: error:", nothing on stdout, and the
// documented exit code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/correctness/tools/command.h"

namespace zyfa::tools {
namespace {

using namespace testing_support;
using testing::HasSubstr;
using testing::StartsWith;

void expect_error(const Result& result, int code, const std::string& part) {
  EXPECT_EQ(result.exit_code, code) << result.out;
  EXPECT_THAT(result.err, StartsWith("zyfa-jit: error: "));
  EXPECT_THAT(result.err, HasSubstr(part));
  EXPECT_EQ(result.out, "");
}

TEST(Usage, NoOrUnknownCommand) {
  const Session session;
  expect_error(session.zyfa_jit({}), 1, "subcommand is required\nTry: zyfa-jit --help\n");
  expect_error(session.zyfa_jit({"fly"}), 1, "Try: zyfa-jit --help\n");
}

TEST(Usage, MissingAndWrongOptions) {
  const Session session;
  expect_error(session.zyfa_jit({"run"}), 1, "--inputs is required\nTry: zyfa-jit run --help");
  expect_error(session.zyfa_jit({"run", "--inputs", "x", "--mask", "diagonal"}), 1, "diagonal not in {");
  expect_error(session.zyfa_jit({"run", "--inputs", "x", "--device", "gpu"}), 1, "gpu not in {");
  expect_error(session.zyfa_jit({"run", "--inputs", "x", "--repeat", "0"}), 1, "--repeat");
  expect_error(session.zyfa_jit({"run", "--inputs", "x", "--wat"}), 1, "--wat");
  expect_error(session.zyfa_jit({"prewarm"}), 1, "--shapes is required");
  expect_error(session.zyfa_jit({"prewarm", "--shapes", "x", "-j", "many"}), 1, "many");
  expect_error(session.zyfa_jit({"explain"}), 1, "--problem is required");
  expect_error(session.zyfa_jit({"simulate"}), 1, "JOB is required");
  expect_error(session.zyfa_jit({"verify"}), 1, "FILE is required");
  expect_error(session.zyfa_jit({"dump"}), 1, "exactly one of KEY, --problem and --object");
  expect_error(session.zyfa_jit({"dump", "abcd", "--problem", "bf16,d=128"}), 1, "exactly one of");
}

TEST(Usage, Accuracy) {
  const Session session;
  const auto accuracy = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "accuracy");
    return session.zyfa_jit(arguments);
  };
  expect_error(accuracy({}), 1, "give exactly one of --inputs and --synthetic");
  expect_error(accuracy({"--inputs", "x", "--synthetic", "sink"}), 1, "give exactly one of");
  expect_error(accuracy({"--inputs", session / "gone"}), 1, "gone");
  expect_error(accuracy({"--inputs", "x", "--by", "guess"}), 1, "guess not in {");
  for (const char* text : {"sunk", "sink:", "sink:0", "sink:32", "sink:18.5", "sink:18:", "sink:18:0",
                           "sink:18:1048577", "sink:18:4096:1", "sink:-1"}) {
    expect_error(accuracy({"--synthetic", text}), 1, "synthetic inputs '" + std::string(text) + "' are not known");
  }
  expect_error(accuracy({"--synthetic", "sink", "--variants", "p=fast"}), 1,
               "no variant has the word 'p=fast'; words are bf16");
  expect_error(accuracy({"--synthetic", "sink", "--variants", "p=lean,,blocks"}), 1, "the word ''");
  expect_error(accuracy({"--synthetic", "sink", "--variants", "peer,p=lean"}), 1, "they exclude each other");
  expect_error(accuracy({"--synthetic", "sink", "--with", "turn"}), 1, "'turn'");
  expect_error(accuracy({"--synthetic", "sink", "--with", "p=exact"}), 1,
               "--with 'p=exact' sets what tells variants apart");
  expect_error(accuracy({"--synthetic", "sink", "--with", "lse"}), 1, "what the inputs fix");
  put_file(session / "codes",
           io::testing_support::safetensors_text(R"({"q":{"dtype":"F8_E4M3","shape":[1,1,1],"data_offsets":[0,1]},)"
                                                 R"("k":{"dtype":"F8_E4M3","shape":[1,1,1],"data_offsets":[1,2]},)"
                                                 R"("v":{"dtype":"F8_E4M3","shape":[1,1,1],"data_offsets":[2,3]}})",
                                                 "abc"));
  expect_error(accuracy({"--inputs", session / "codes"}), 2, "q, k and v must be BF16");
}

TEST(Usage, Profile) {
  const Session session;
  const auto profile = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "profile");
    return session.zyfa_jit(arguments);
  };
  const auto problem = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--problem", "bf16,d=128", "--tokens", "64"});
    return profile(more);
  };
  expect_error(profile({}), 1, "give exactly one of JOB, --problem and --parameters");
  expect_error(profile({"job.json", "--problem", "bf16,d=128"}), 1, "give exactly one of");
  expect_error(profile({"--parameters", "--tokens", "64"}), 1, "need --problem");
  expect_error(profile({"--parameters", "--set", "barrier_cycles=8"}), 1, "of the model's options it has none");
  expect_error(profile({"--parameters", "--html", "p.html"}), 1, "of the model's options it has none");
  expect_error(profile({"job.json", "--heads", "4"}), 1, "need --problem");
  expect_error(profile({session / "gone"}), 1, "gone");
  expect_error(profile({"--problem", "bf16,d=128"}), 1, "--problem needs --tokens N, or --inputs FILE");
  expect_error(problem({"--inputs", kSample}), 1, "--inputs has its own shape");
  expect_error(problem({"--tokens", "0"}), 1, "--tokens");
  expect_error(profile({"--problem", "fp8e4m3,d=128", "--inputs", kSample}), 1,
               "holds inputs of bf16,d=128,full; --problem is fp8e4m3,d=128,full");
  expect_error(problem({"--heads", "6", "--key-heads", "4"}), 1, "6 heads are no multiple of 4 key heads");
  // Before a simulation that would take minutes.
  expect_error(profile({"--problem", "bf16,d=128", "--tokens", "1048576", "--set", "turbo=1"}), 1, "\"turbo\"");
  expect_error(problem({"--set", "turbo=1"}), 1, "\"turbo\" is no timing parameter\n  allowed: hold_other_wave, ");
  expect_error(problem({"--set", "barrier_cycles"}), 1, "allowed is name=number");
  expect_error(problem({"--set", "barrier_cycles=81"}), 1,
               "barrier_cycles is 81; allowed are whole numbers from 4 to 80");
  expect_error(problem({"--workgroup", "1,0,0"}), 1, "workgroup (1, 0, 0) is to be recorded; the grid has 1 x 1 x 1");
  for (const char* text : {"1", "1,2", "1,2,3,4", "a,b,c", "1,2,3 ", "4294967296,0,0"}) {
    expect_error(problem({"--workgroup", text}), 1, "workgroup '" + std::string(text) + "' is not X,Y,Z");
  }
  expect_error(problem({"--workgroup", "0,0,0", "--record", "2"}), 1, "give one of the two");
  expect_error(problem({"--attention", "128/128/32"}), 1, "--attention says what a job computes");
  expect_error(profile({"job.json", "--attention", "128/128"}), 1, "--attention '128/128' is not QK/V/QUERIES");
  expect_error(problem({"--sensitivity", "--no-error-bars"}), 1, "give one of the two");
  expect_error(problem({"--clock", "2.5"}), 1, "a clock of 2.5 GHz; allowed are 0.1 to 2.4 GHz");
  expect_error(problem({"--clock", "0"}), 1, "a clock of 0 GHz");
  expect_error(problem({"--record", "-1"}), 1, "Value -1 not in range");
  expect_error(profile({"--problem", "fp16,d=128", "--tokens", "64"}), 2, "no kernel for the problem fp16,d=128,full");
  expect_error(session.zyfa_jit({"simulate", session / "gone", "--profile", "p", "--compare-rules"}), 1,
               "--compare-rules runs the job many times; --profile takes one run");
}

TEST(Usage, Problems) {
  const Session session;
  expect_error(session.zyfa_jit({"explain", "--problem", "bf17,d=128"}), 1, "'bf17'");
  expect_error(session.zyfa_jit({"dump", "--problem", "bf16"}), 1, "head dim is missing");
  const Result refused = session.zyfa_jit({"dump", "--problem", "fp16,d=96"});
  expect_error(refused, 2, "no kernel for the problem fp16,d=96,full");
  EXPECT_THAT(refused.err, HasSubstr("\n  dtype fp16 is not supported"));
  EXPECT_THAT(refused.err, HasSubstr("\n  head_dim_qk 96 is not supported"));
}

TEST(Usage, Schedules) {
  const Session session;
  expect_error(session.zyfa_jit({"dump", "--problem", "bf16,d=128", "--placement", "fastest"}), 1,
               "no schedule is named 'fastest'; give one of ");
  expect_error(session.zyfa_jit({"dump", "--problem", "bf16,d=128", "--placement", "@" + (session / "gone").string()}),
               1, "gone: cannot open");
  put_file(session / "bad", "name=x;loop={");
  expect_error(session.zyfa_jit({"dump", "--problem", "bf16,d=128", "--placement", "@" + (session / "bad").string()}),
               1, "");
}

TEST(Usage, Fp8Options) {
  const Session session;
  put_inputs(session / "in", {8, 2, 128}, {8, 2, 128}, {8, 2, 128});
  const auto run = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"run", "--inputs", session / "in"});
    return session.zyfa_jit(options);
  };
  expect_error(run({"--p", "exact"}), 2, "p=exact needs FP8: fp8e4m3 inputs, or bf16 inputs and compute=fp8");
  expect_error(run({"--p", "lean"}), 2, "the word 'p=lean' is for FP8");
  expect_error(run({"--mixed"}), 2, "near=bf16 needs compute=fp8");
  expect_error(run({"--compute", "fp8", "--blocks", "--unscaled"}), 1, "'unscaled' repeats or contradicts");
  expect_error(run({"--compute", "fp8", "--rotate", "--no-rotate"}), 1, "'no-rotate' repeats or contradicts");
  expect_error(run({"--compute", "fp8", "--form", "folded", "--p", "exact"}), 2,
               "form=folded does not go with p=exact");
  expect_error(run({"--compute", "fp8", "--qk", "int8", "--form", "folded"}), 2,
               "form=folded does not go with qk=int8");
  expect_error(run({"--compute", "fp8", "--smooth-k"}), 2, "smooth-k does not go with lse");
  expect_error(run({"--compute", "fp8", "--u8", "truncate", "--p", "exact"}), 2,
               "u8=truncate does not go with p=exact");
  expect_error(run({"--sum", "dense"}), 2, "sum=dense needs FP8: fp8e4m3 inputs, or bf16 inputs and compute=fp8");
  expect_error(run({"--sum", "auto"}), 2, "the word 'sum=auto' is for FP8");
  expect_error(run({"--compute", "fp8", "--sum", "valu"}), 1, "valu not in {");
  expect_error(run({"--compute", "int8"}), 1, "int8 not in {");
  expect_error(run({"--p", "fast"}), 1, "fast not in {");
  expect_error(run({"--form", "other"}), 1, "other not in {");
  expect_error(session.zyfa_jit({"dump", "--problem", "bf16,d=128", "--helper", "quantise k"}), 1,
               "the problem bf16,d=128,full has no helper kernel");
  expect_error(session.zyfa_jit({"dump", "abcd", "--helper", "quantise k"}), 1, "--helper goes with --problem");
}

// Words of FP8 without FP8 are one mistake, with the code of what has no kernel, whether or not a word is a default.
TEST(Usage, Fp8OptionsWithoutFp8) {
  const Session session;
  put_inputs(session / "in", {8, 2, 128}, {8, 2, 128}, {8, 2, 128});
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{{"--p", "lean"},
                                                                                       {"--p", "exact"},
                                                                                       {"--blocks"},
                                                                                       {"--unscaled"},
                                                                                       {"--form", "folded"},
                                                                                       {"--qk", "fp8"},
                                                                                       {"--qk", "int8"},
                                                                                       {"--mixed"},
                                                                                       {"--sum", "auto"},
                                                                                       {"--sum", "sparse"},
                                                                                       {"--rotate"},
                                                                                       {"--no-rotate"},
                                                                                       {"--smooth-k", "--no-lse"},
                                                                                       {"--scales", "head"},
                                                                                       {"--scales", "tensor"},
                                                                                       {"--u8", "nearest"},
                                                                                       {"--u8", "truncate"}}) {
    std::vector<std::string> arguments{"run", "--inputs", session / "in"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Result result = session.zyfa_jit(arguments);
    expect_error(result, 2, "compute=fp8");
  }
}

// A row that is of another problem is told by words that a problem line has.
TEST(Usage, RowsOfOtherProblems) {
  const Session session;
  put_inputs(session / "in", {8, 2, 128}, {8, 2, 128}, {8, 2, 128});
  const auto run = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"run", "--inputs", session / "in"});
    return session.zyfa_jit(options);
  };
  expect_error(run({"--schedule", "fp8_pingpong"}), 2, "schedule fp8_pingpong: element is bf16, the row takes fp8e4m3");
  expect_error(run({"--compute", "fp8", "--schedule", "pingpong"}), 2,
               "schedule pingpong: element is fp8e4m3, the row takes bf16");
  expect_error(run({"--compute", "fp8", "--mixed", "--schedule", "fp8_pingpong"}), 2,
               "schedule fp8_pingpong: near is bf16, the row takes fp8\n");
  expect_error(run({"--compute", "fp8", "--schedule", "fp8_near_pingpong"}), 2,
               "schedule fp8_near_pingpong: near is fp8, the row takes bf16\n");
}

// Before a kernel is chosen (the problem has none, which would be told otherwise) and before a file is made.
TEST(Usage, TuneParameters) {
  const Session session;
  const auto tune = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"tune", "--problem", "bf16,d=96", "--log", session / "log"});
    return session.zyfa_jit(more);
  };
  const std::string allowed = "\n  allowed: hold_other_wave, ";
  expect_error(tune({}), 2, "no kernel for the problem bf16,d=96,full");
  std::filesystem::remove(session / "log");
  for (const char* option : {"--set", "--also"}) {
    expect_error(tune({option, "turbo=1"}), 1, "\"turbo\" is no timing parameter" + allowed);
    expect_error(tune({option, "barrier_cycles=81"}), 1,
                 "barrier_cycles is 81; allowed are whole numbers from 4 to 80");
    expect_error(tune({option, "barrier_cycles=8.5"}), 1, "barrier_cycles is 8.5; allowed are whole numbers");
    expect_error(tune({option, "barrier_cycles"}), 1, "\"barrier_cycles\" sets no timing parameter; allowed is name=");
    expect_error(tune({option, ""}), 1, "\"\" sets no timing parameter; allowed is name=number");
  }
  // Each of many, wherever it stands.
  expect_error(tune({"--set", "barrier_cycles=8", "--set", "turbo=1"}), 1, "\"turbo\"");
  expect_error(tune({"--also", "barrier_cycles=8", "--also", "barrier_cycles=8,turbo=1"}), 1, "\"turbo\"");
  EXPECT_FALSE(std::filesystem::exists(session / "log"));
  for (const std::vector<std::string>& way :
       {std::vector<std::string>{"--write-table", session / "t.inc"},
        std::vector<std::string>{"--problem", "fp8e4m3,d=128", "--variants", "p"}}) {
    std::vector<std::string> arguments{"tune", "--logs", session / "logs", "--also", "turbo=1"};
    arguments.insert(arguments.end(), way.begin(), way.end());
    expect_error(session.zyfa_jit(arguments), 1, "\"turbo\" is no timing parameter" + allowed);
    EXPECT_FALSE(std::filesystem::exists(session / "logs"));
  }
}

// explain must not describe what compile refuses.
TEST(Usage, ExplainRefusesIllegalPlacements) {
  const Session session;
  const auto explain = [&](const char* placement) {
    return session.zyfa_jit({"explain", "--problem", "bf16,d=128,causal", "--placement", placement});
  };
  const auto dump = [&](const char* placement) {
    return session.zyfa_jit({"dump", "--problem", "bf16,d=128,causal", "--placement", placement});
  };
  for (const char* placement : {"name=p;waves=2;loop=pv", "fastest"}) {
    const Result refused = explain(placement);
    expect_error(refused, 1, "");
    EXPECT_EQ(refused.err, dump(placement).err);
  }
  expect_error(session.zyfa_jit({"explain", "--problem", "bf16,d=128", "--placement", "naive", "--schedule", "naive"}),
               1, "");
}

TEST(Usage, Keys) {
  const Session session;
  expect_error(session.zyfa_jit({"dump", "xyz"}), 1, "'xyz' is no key");
  expect_error(session.zyfa_jit({"dump", "0123abcd"}), 1, "starts with '0123abcd'");
}

TEST(Usage, FilesThatAreNotThere) {
  const Session session;
  const std::string gone = session / "gone";
  expect_error(session.zyfa_jit({"run", "--inputs", gone}), 1, "gone: cannot open: No such file or directory");
  expect_error(session.zyfa_jit({"prewarm", "--shapes", gone}), 1, "gone: cannot open");
  expect_error(session.zyfa_jit({"simulate", gone}), 1, "gone: cannot open");
  expect_error(session.zyfa_jit({"verify", gone}), 1, "gone: cannot open");
  expect_error(session.zyfa_jit({"dump", "--object", gone}), 1, "gone: cannot open");
}

TEST(Usage, JsonErrorsNameTheirCode) {
  const Session session;
  const Result result = session.zyfa_jit({"explain", "--problem", "nonsense", "--json"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.json()["error"]["code"], "invalid-argument");
  EXPECT_THAT(result.err, StartsWith("zyfa-jit: error: "));
}

TEST(Usage, JsonErrorsOfUsageToo) {
  const Session session;
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"run", "--json"}, {"explain", "--wat", "--json"}, {"--json"}, {"verify", "--json", "a", "b"}}) {
    const Result result = session.zyfa_jit(arguments);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.json()["error"]["code"], "invalid-argument") << result.out;
    EXPECT_THAT(result.json()["error"]["details"][0].get<std::string>(), StartsWith("Try: zyfa-jit "));
    EXPECT_THAT(result.err, StartsWith("zyfa-jit: error: "));
  }
}

TEST(Usage, ObjectsThatAreNone) {
  const Session session;
  put_file(session / "o", "not an ELF file, but long enough to look at for a while, one would think");
  expect_error(session.zyfa_jit({"verify", session / "o"}), 1, (session / "o").string() + ": ");
  expect_error(session.zyfa_jit({"dump", "--object", session / "o"}), 1, "");
  expect_error(session.zyfa_jit({"dump", "--object", session / "o", "--schedule"}), 1,
               "--schedule and --registers are known of zyfa's own kernels only");
}

TEST(Usage, NoGpuIsATypedError) {
  Session session;
  session.environment["LD_LIBRARY_PATH"] = "/nonexistent";
  const Result result = session.zyfa_jit({"run", "--inputs", kSample, "--device", "hip", "--json"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.json()["error"]["code"], "device-unavailable") << result.err;
  expect_error(session.zyfa_jit({"run", "--inputs", kSample, "--device", "hip", "--strict"}), 1,
               "--strict, --landing, --interleave and --rule need the simulator");
}

TEST(Usage, PrewarmOfNothingFails) {
  const Session session;
  put_file(session / "empty", "# no problem\n");
  expect_error(session.zyfa_jit({"prewarm", "--shapes", session / "empty"}), 1, "lists no problem");
  // All refused: two failures are counted, each with its line.
  put_file(session / "refused", "fp16,d=128\nbf16,d=96,causal\n");
  const Result result = session.zyfa_jit({"prewarm", "--shapes", session / "refused", "-j", "1"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("refused:1: no kernel for the problem fp16,d=128,full"));
  EXPECT_THAT(result.err, HasSubstr("refused:2: no kernel for the problem bf16,d=96,causal"));
  EXPECT_THAT(result.out, HasSubstr("2 problems: 0 built, 0 read from the cache, 2 failed"));
}

TEST(Usage, RequireModeNamesThePrewarmLine) {
  Session session;
  session.environment["ZYFA_CACHE"] = "require";
  const Result result = session.zyfa_jit({"run", "--inputs", kSample});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("zyfa-jit prewarm --shapes"));
}

}  // namespace
}  // namespace zyfa::tools
