#pragma once

#include <cstdint>
#include <memory>
#include <sqlite3.h>
#include <stdexcept>
#include <string>
#include <string_view>

namespace parley::actors {

/// One prepared statement. Throws std::runtime_error with SQLite's words.
class sqlite_statement {
public:
  sqlite_statement(sqlite3* db, std::string_view sql) : db_(db) {
    sqlite3_stmt* made = nullptr;
    check(sqlite3_prepare_v2(db, sql.data(), static_cast<int>(sql.size()), &made, nullptr));
    of_.reset(made);
  }

  /// Binds the next parameter. A text has to outlive the last `step`.
  sqlite_statement& bind(std::string_view text) {
    check(sqlite3_bind_text(of_.get(), ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_STATIC));
    return *this;
  }
  sqlite_statement& bind(std::int64_t number) {
    check(sqlite3_bind_int64(of_.get(), ++bound_, number));
    return *this;
  }
  sqlite_statement& bind(double number) {
    check(sqlite3_bind_double(of_.get(), ++bound_, number));
    return *this;
  }

  /// Whether there is a row.
  bool step() {
    const int got = sqlite3_step(of_.get());
    if (got != SQLITE_ROW && got != SQLITE_DONE) check(got);
    return got == SQLITE_ROW;
  }

  std::string text(int column) const {
    const auto* from = reinterpret_cast<const char*>(sqlite3_column_text(of_.get(), column));
    return from ? std::string(from, static_cast<std::size_t>(sqlite3_column_bytes(of_.get(), column))) : std::string();
  }
  std::int64_t integer(int column) const { return sqlite3_column_int64(of_.get(), column); }
  double real(int column) const { return sqlite3_column_double(of_.get(), column); }

private:
  void check(int got) const {
    if (got != SQLITE_OK) throw std::runtime_error(std::string("the index of recordings: ") + sqlite3_errmsg(db_));
  }

  struct finaliser {
    void operator()(sqlite3_stmt* of) const { sqlite3_finalize(of); }
  };
  sqlite3* db_;
  std::unique_ptr<sqlite3_stmt, finaliser> of_;
  int bound_ = 0;
};

} // namespace parley::actors
