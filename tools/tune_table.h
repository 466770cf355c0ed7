// zyfa-jit tune --write-table: every tuned row of the kernel table looked for again, each with a log of its own, and
// the file of the winners (docs/schedules.md, "The tuned rows").
#pragma once

#include <string>
#include <vector>

#include "tools/cli.h"
#include "zyfa/tune.h"

namespace zyfa::tools {

struct TableRequest {
  std::string file, logs;         // the file to write; the folder of the logs, <row>.jsonl
  std::vector<std::string> rows;  // those to look for; empty: all
  TuneOptions tune;               // tokens, starts: each row's own
  OutputForm form = OutputForm::kText;
};

// The exit code. A walk starts from the row's placement, or where its log began; the file depends on the logs and the
// options alone. It is written when all rows are done, and only over a file that holds the rows this program was built
// with, or over none.
[[nodiscard]] int write_table(const TableRequest& request);

}  // namespace zyfa::tools
