// The log parser, line by line, and the reader on whole files. Threading: single-threaded.
#include "sim/log/access_log.hpp"

#include <cstdio>
#include <memory>
#include <string>

#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::tool;

namespace {

const std::string tail = " \"GET / HTTP/1.1\" 200 512";

/// Seconds since 1970 of a line with this stamp, or the reason why it is unreadable.
std::string second_of(const std::string& stamp) {
  LogLine line;
  const char* fault = parse_log_line("host - - [" + stamp + "]" + tail, line);
  return fault != nullptr ? fault : std::to_string(line.second);
}

std::string fault_of(std::string_view text) {
  LogLine line;
  const char* fault = parse_log_line(text, line);
  return fault == nullptr ? "" : fault;
}

/// The client of a line, or in brackets why it is unreadable.
std::string client_of(const std::string& text) {
  LogLine line;
  const char* fault = parse_log_line(text, line);
  return fault == nullptr ? std::string(line.client) : std::string("[") + fault + "]";
}

std::string stamped(const std::string& client, const std::string& rest) {
  return client + " - - [17/May/2015:10:05:03 +0000] " + rest;
}

struct Closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

AccessLog read_text(std::string text) {
  const std::unique_ptr<std::FILE, Closer> file(std::tmpfile());
  REQUIRE(file);
  REQUIRE(std::fwrite(text.data(), 1, text.size(), file.get()) == text.size());
  std::rewind(file.get());
  return read_access_log(file.get());
}

}  // namespace

TEST_CASE("a stamp becomes seconds since 1970 in UTC") {
  const struct {
    const char* stamp;
    const char* second;
  } cases[] = {
      {"01/Jan/1970:00:00:00 +0000", "0"},
      {"17/May/2015:10:05:03 +0000", "1431857103"},
      {"17/May/2015:12:05:03 +0200", "1431857103"},
      {"17/May/2015:04:35:03 -0530", "1431857103"},
      {"18/May/2015:00:05:03 +1400", "1431857103"},
      {"29/Feb/2000:00:00:00 +0000", "951782400"},
      {"29/Feb/2024:23:59:59 +0000", "1709251199"},
      {"31/Dec/2016:23:59:60 +0000", "1483228800"},  // a leap second
      {"31/Dec/2111:23:59:59 +0000", "4481049599"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.stamp);
    CHECK(second_of(c.stamp) == c.second);
  }
}

TEST_CASE("a stamp that names no instant is refused with the reason") {
  const struct {
    const char* stamp;
    const char* reason;
  } cases[] = {
      {"29/Feb/2015:00:00:00 +0000", "no such day"},
      {"29/Feb/2100:00:00:00 +0000", "no such day"},
      {"31/Apr/2015:00:00:00 +0000", "no such day"},
      {"00/May/2015:00:00:00 +0000", "no such day"},
      {"32/May/2015:00:00:00 +0000", "no such day"},
      {"17/Mai/2015:10:05:03 +0000", "no month"},
      {"17/may/2015:10:05:03 +0000", "no month"},
      {"17/May/1969:10:05:03 +0000", "1970 to 2111"},
      {"17/May/2112:10:05:03 +0000", "1970 to 2111"},
      {"01/Jan/1970:00:59:59 +0100", "before 1970 in UTC"},
      {"17/May/2015:24:05:03 +0000", "time of day"},
      {"17/May/2015:10:60:03 +0000", "time of day"},
      {"17/May/2015:10:05:61 +0000", "time of day"},
      {"17/May/2015:10:05:03 +1500", "time zone is out of range"},
      {"17/May/2015:10:05:03 +0060", "time zone is out of range"},
      {"17/May/2015:10:05:03 00000", "form +0000"},
      {"17/May/2015:10:05:03 +00a0", "form +0000"},
      {"17/May/2015:10:05:03", "not of the form"},
      {"7/May/2015:10:05:03 +0000", "not of the form"},
      {"17-May-2015:10:05:03 +0000", "not of the form"},
      {"+7/May/2015:10:05:03 +0000", "letters where digits"},
      {"17/May/ 015:10:05:03 +0000", "letters where digits"},
      {"17/May/2015:-1:05:03 +0000", "letters where digits"},
      {"", "not of the form"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.stamp);
    CHECK_THAT(second_of(c.stamp), sluice::test::contains_text(c.reason));
  }
}

TEST_CASE("lines in the Common and the Combined Log Format are read") {
  const std::string readable[] = {
      stamped("10.0.0.1", R"("GET / HTTP/1.1" 200 512)"),
      stamped("10.0.0.1", R"("GET / HTTP/1.1" 304 -)"),
      stamped("10.0.0.1", R"("GET / HTTP/1.1" 200 512 "-" "agent")"),
      stamped("10.0.0.1", R"("GET / HTTP/1.1" 200 512 "-" "agent" 0.003 "extra")"),
      stamped("10.0.0.1", R"("GET /\"x\" HTTP/1.1" 200 512 "\"" "ends in a backslash \\")"),
      stamped("10.0.0.1", R"("-" 408 -)"),
      stamped("10.0.0.1", R"("" 400 0)"),
      stamped("10.0.0.1", "\"\x16\x03\xff\" 400 226"),
      stamped("::1", R"("GET / HTTP/1.1" 200 512)"),
      stamped("2001:db8:85a3:8d3:1319:8a2e:370:7348", R"("GET / HTTP/1.1" 200 512)"),
      stamped("host.example.org", R"("GET /[x] HTTP/1.1" 200 512)"),
      R"(10.0.0.1 ident alice smith [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 9223372036854775807)",
  };
  for (const std::string& text : readable) {
    CAPTURE(text);
    LogLine line;
    CHECK(parse_log_line(text, line) == nullptr);
    CHECK_FALSE(line.damaged_tail);
  }
}

TEST_CASE("the client is found behind a virtual host, in X-Forwarded-For, and without its port") {
  const std::string at = " [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 512";
  const struct {
    std::string text;
    std::string client;  ///< or a part of the reason in brackets
  } cases[] = {
      // A virtual host: Apache's vhost_combined, and "%v" alone before an address.
      {"www.example.org:443 192.0.2.1 - -" + at + " \"-\" \"agent\"", "192.0.2.1"},
      {"www.example.org:80 2001:db8::17 - alice" + at, "2001:db8::17"},
      {"www.example.org:80 client.example.net - -" + at, "client.example.net"},
      {"www.example.org:80 192.0.2.1 - alice smith" + at, "192.0.2.1"},
      {"127.0.1.1:80 192.0.2.1 - -" + at, "192.0.2.1"},
      {"[2001:db8::80]:80 192.0.2.1 - -" + at, "192.0.2.1"},
      {"localhost:8080 [::1] - -" + at, "::1"},
      {"www.example.org 192.0.2.1 - -" + at, "192.0.2.1"},
      {"2024-01-01T00:00:00Z 192.0.2.1 - -" + at, "192.0.2.1"},
      {"1431857103.123 192.0.2.1 - -" + at, "192.0.2.1"},
      {"www.example.org:80 203.0.113.7, 10.0.0.1 - -" + at, "203.0.113.7"},
      {"www.example.org:80 - - -" + at, "[the client is not told"},
      {"www.example.org:443 - -" + at, "[the client is not told"},
      {"www.example.org:443 x -" + at, "[ident and user"},
      {"www.example.org 192.0.2.1 -" + at, "[ident and user"},
      // Two words that could be the client.
      {"192.0.2.80 203.0.113.7 - -" + at, "[an address"},
      {"192.0.2.1 - 203.0.113.7" + at, "[an address"},
      {"192.0.2.1 203.0.113.7 -" + at, "[an address"},
      {"203.0.113.7, 10.0.0.1 10.0.0.2 - -" + at, "[an address"},
      {"10.0.0.2 203.0.113.7, 10.0.0.1 - -" + at, "["},
      {"www.example.org a.example.net - -" + at, "[two names"},
      {"www.example.org a.example.net -" + at, "[two names"},
      {"www.example.org 443 192.0.2.1 - -" + at, "[an address"},
      {"a.example.net - alice smith" + at, "a.example.net"},
      {"192.0.2.1 ident alice smith" + at, "192.0.2.1"},
      {"_ 192.0.2.1 - -" + at, "192.0.2.1"},
      {"192.0.2.1 www.example.org -" + at, "192.0.2.1"},  // lighttpd: the server behind the client
      {"a b c d" + at, "[more than a client"},
      {"192.0.2.80 a.example.net - -" + at, "[more than a client"},
      {"Nov 27 05:10:30 web1 nginx: 192.0.2.1 - -" + at, "[an address"},
      {"Nov 27 05:10:30 web1 nginx: a.example.net - -" + at, "[more than a client"},
      {"2015-05-17 10:05:03 192.0.2.1 - -" + at, "[an address"},
      {"web_1  | 192.0.2.1 - -" + at, "["},
      // X-Forwarded-For in the place of the client.
      {"203.0.113.7, 10.0.0.1, 10.0.0.2 - -" + at, "203.0.113.7"},
      {"203.0.113.7,10.0.0.1 - alice" + at, "203.0.113.7"},
      {"203.0.113.7:51234, 10.0.0.1:80 - -" + at, "203.0.113.7"},
      {"2001:db8::17, 10.0.0.1 - -" + at, "2001:db8::17"},
      {"[2001:db8::17]:4711, [2001:db8::1]:80 - -" + at, "2001:db8::17"},
      {"203.0.113.7, unknown - -" + at, "203.0.113.7"},
      {"fe80::1%eth0, 10.0.0.1 - -" + at, "fe80::1%eth0"},
      {"\"203.0.113.7, 10.0.0.1\" - -" + at, "203.0.113.7"},
      {"\"203.0.113.7\" - -" + at, "203.0.113.7"},
      {"\"-\" - -" + at, "[the client is not told"},
      {"\"203.0.113.7 - -" + at, "[the quoted client"},
      {"unknown, 10.0.0.1 - -" + at, "[the client is not told"},
      {"203.0.113.7, - -" + at, "["},
      {"203.0.113.7,, 10.0.0.1 - -" + at, "[the list of forwarded"},
      {"203.0.113.7, ' OR 1=1, 10.0.0.1 - -" + at, "["},
      {"x, 10.0.0.1 - -" + at, "[the list of forwarded"},
      {"203.0.113.7 , 10.0.0.1 - -" + at, "[an address"},
      {"203.0.113.7 ,10.0.0.1 - -" + at, "[more than a client"},
      // X-Forwarded-For in quotes behind the size, as nginx writes it.
      {"10.0.0.1 - -" + at + " \"-\" \"agent\" \"203.0.113.7\"", "203.0.113.7"},
      {"10.0.0.1 - -" + at + " \"-\" \"agent\" \"203.0.113.7, 10.0.0.9\"", "203.0.113.7"},
      {"10.0.0.1 - -" + at + " \"-\" \"agent\" \"2001:db8::17, 10.0.0.9\" 0.003", "2001:db8::17"},
      {"10.0.0.1 - -" + at + " \"203.0.113.7\"", "203.0.113.7"},
      {"10.0.0.1 - -" + at + " \"-\" \"agent\" \"-\"", "10.0.0.1"},
      {"10.0.0.1 - -" + at + " \"-\" \"agent\" \"unknown, 10.0.0.9\"", "[the client is not told"},
      {"www.example.org:80 10.0.0.1 - -" + at + " \"-\" \"agent\" \"203.0.113.7\"", "203.0.113.7"},
      {"10.0.0.1 - -" + at + " \"-\" \"agent\" \"foo, 203.0.113.7\"", "[the list of forwarded"},
      {"10.0.0.1 - -" + at + " \"-\" \"agent\" \"gzip, br\"", "10.0.0.1"},
      // The referrer and the agent, in which a client writes what it likes.
      {"192.0.2.1 - -" + at + " \"-\" \"203.0.113.7\"", "[an address stands where the referrer"},
      {"192.0.2.1 - -" + at + " \"203.0.113.7\" \"agent\"",
       "[an address stands where the referrer"},
      {"192.0.2.1 - -" + at + " \"203.0.113.7\" \"203.0.113.8\" \"-\"", "192.0.2.1"},
      {"10.0.0.1 - -" + at + " \"192.0.2.8\" \"192.0.2.9\" \"203.0.113.7\"", "203.0.113.7"},
      {"192.0.2.1 - -" + at + " \"203.0.113.7\" \"age", "192.0.2.1"},
      {"192.0.2.1 - -" + at + " \"-\" \"unknown\"", "192.0.2.1"},
      {"192.0.2.1 - -" + at + " \"-\" \"203.0.113.7, x\"", "[an address stands where the referrer"},
      // Neither the addresses of servers, which have ports, nor other words.
      {"192.0.2.1 - -" + at + " \"-\" \"agent\" \"10.0.0.5:8080\"", "192.0.2.1"},
      {"192.0.2.1 - -" + at + " \"-\" \"agent 10.0.0.5\" \"www.example.org\"", "192.0.2.1"},
      {"192.0.2.1 - -" + at + " \"http://10.0.0.5/\" \"agent\"", "192.0.2.1"},
      {"192.0.2.1 - -" + at + " \"-\" \"agent\" 10.0.0.5", "192.0.2.1"},
      {"203.0.113.7, 10.0.0.1 - -" + at + " \"-\" \"agent\" \"203.0.113.8\"",
       "[there are two lists"},
      // A port of the client's connection does not make it another client.
      {"192.0.2.1:51234 - -" + at, "192.0.2.1"},
      {"[2001:db8::17]:51234 - alice" + at, "2001:db8::17"},
      {"192.0.2.1:51234 - alice smith" + at, "192.0.2.1"},
      {"[2001:db8::17] - -" + at, "2001:db8::17"},
      {"2001:db8::17 - -" + at, "2001:db8::17"},
      {"fe80::1%eth0 - -" + at, "fe80::1%eth0"},
      {"192.0.2.1:0 - -" + at, "192.0.2.1:0"},
      {"192.0.2.1:65536 - -" + at, "192.0.2.1:65536"},
      // What names no client would make many clients one.
      {"- - -" + at, "[the client is not told"},
      {"unknown - -" + at, "[the client is not told"},
      {"{\"log\":\"192.0.2.1 - -" + at + "\"}", "[the line is JSON"},
      {"\"{192.0.2.1\" - -" + at, "["},
      {"<134>192.0.2.1 - -" + at, "[the client holds"},
      {"192.0.2.1; - -" + at, "[the client holds"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.text);
    const std::string client = client_of(c.text);
    if (c.client.starts_with('[')) {
      CHECK_THAT(client, sluice::test::contains_text(c.client));
    } else {
      CHECK(client == c.client);
    }
  }
}

TEST_CASE("a log has as many clients in every form of its lines, or none") {
  // How a client, known as `name`, may stand in a line; "%" is its place.
  const std::string forms[] = {
      R"(% - - [T] "GET / HTTP/1.1" 200 512)",
      R"(% - bob [T] "GET / HTTP/1.1" 200 512 "-" "agent")",
      R"(www.example.org:443 % - - [T] "GET / HTTP/1.1" 200 512 "-" "agent")",
      R"(www.example.org % - - [T] "GET / HTTP/1.1" 200 512)",
      R"(%, 10.0.0.1, 10.0.0.2 - - [T] "GET / HTTP/1.1" 200 512)",
      R"(www.example.org:443 %, 10.0.0.1 - - [T] "GET / HTTP/1.1" 200 512)",
      R"(10.0.0.1 - - [T] "GET / HTTP/1.1" 200 512 "-" "agent" "%, 10.0.0.9")",
      R"("%, 10.0.0.1" - - [T] "GET / HTTP/1.1" 200 512)",
      R"(- % - - [T] "GET / HTTP/1.1" 200 512)",
      R"(10.0.0.1 % - - [T] "GET / HTTP/1.1" 200 512)",
      R"(10.0.0.1 - % [T] "GET / HTTP/1.1" 200 512)",
      R"(10.0.0.1 %, 10.0.0.9 - - [T] "GET / HTTP/1.1" 200 512)",
      R"(May 17 10:05:03 web1 % - - [T] "GET / HTTP/1.1" 200 512)",
      R"({"client": "% - - [T] \"GET / HTTP/1.1\" 200 512"})",
  };
  std::size_t readable = 0;
  for (const std::string& form : forms) {
    for (const bool v6 : {false, true}) {
      std::string text;
      for (int client = 1; client <= 101; ++client) {
        std::string line = form;
        const std::string name = (v6 ? "2001:db8::" : "192.0.2.") + std::to_string(client);
        line.replace(line.find('%'), 1, name);
        text += line.replace(line.find("[T]"), 3, "[17/May/2015:10:05:03 +0000]") + "\n";
      }
      const AccessLog log = read_text(text);
      CAPTURE(form, log.first_unreadable.empty() ? "" : log.first_unreadable.front().reason);
      if (log.requests.empty()) {
        CHECK(log.unreadable == 101);
        continue;
      }
      ++readable;
      CHECK(log.unreadable == 0);
      REQUIRE(log.clients.size() == 101);
      CHECK(log.clients[100] == (v6 ? "2001:db8::101" : "192.0.2.101"));
      CHECK(log.virtual_hosts == (form.starts_with("www") ? 101 : 0));
      CHECK(log.forwarded == (form.find("%,") == std::string::npos ? 0 : 101));
    }
  }
  CHECK(readable == 16);
}

TEST_CASE("a cut line is not counted where other lines name their clients at the end") {
  const std::string line =
      stamped("10.0.0.1", R"("GET / HTTP/1.1" 200 512 "-" "agent" "192.0.2.7")");
  const std::string cut = line.substr(0, line.size() - 4);
  const AccessLog log = read_text(line + "\n" + cut + "\n" +
                                  stamped("10.0.0.1", "\"GET /\" 200 1 \"-\" \"agent\" \"-\""));
  CHECK(log.requests.size() == 2);
  CHECK(log.clients == std::vector<std::string>{"192.0.2.7", "10.0.0.1"});
  REQUIRE(log.unreadable == 1);
  CHECK(log.first_unreadable[0].number == 2);
  CHECK_THAT(log.first_unreadable[0].reason,
             sluice::test::contains_text("cut before X-Forwarded-For"));
}

TEST_CASE("a line of another form is refused with the reason") {
  const struct {
    std::string text;
    const char* reason;
  } cases[] = {
      {"", "no second field"},
      {"garbage", "no second field"},
      {" - - [17/May/2015:10:05:03 +0000]" + tail, "begins with a space"},
      {"a b c d", "no [stamp]"},
      {"a - [17/May/2015:10:05:03 +0000]" + tail, "ident and user"},
      {"a - - [17/May/2015:10:05:03 +0000", "has no end"},
      {"a - - [17/May/2015:10:05:03 +0000]x" + tail, "has no end"},
      {stamped("a", "GET / 200 512"), "not quoted"},
      {stamped("a", "\"GET / 200 512"), "does not end"},
      {stamped("a", R"("GET /\" 200 512)"), "does not end"},
      {stamped("a", "\"GET /\""), "nothing follows the request"},
      {stamped("a", "\"GET /\" "), "status"},
      {stamped("a", "\"GET /\" 20 512"), "status"},
      {stamped("a", "\"GET /\" 2000 512"), "status"},
      {stamped("a", "\"GET /\" 099 512"), "status"},
      {stamped("a", "\"GET /\" -20 512"), "status"},
      {stamped("a", "\"GET /\" 200"), "nothing follows the status"},
      {stamped("a", "\"GET /\" 200 "), "size"},
      {stamped("a", "\"GET /\" 200 -1"), "size"},
      {stamped("a", "\"GET /\" 200 12k"), "size"},
      {stamped("a", "\"GET /\" 200 12345678901234567890"), "size"},
      {stamped(std::string(256, 'a'), "\"GET /\" 200 12"), "longer than 255"},
      {stamped("a\x01"
               "b",
               "\"GET /\" 200 12"),
       "not printable"},
      {stamped("a\xc3\xa4", "\"GET /\" 200 12"), "not printable"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.text);
    CHECK_THAT(fault_of(c.text), sluice::test::contains_text(c.reason));
  }
}

TEST_CASE("a line that is broken only behind the bytes is a request with a damaged tail") {
  const std::string whole = R"("GET / HTTP/1.1" 200 512 "http://a.example/" "agent 1.0")";
  const std::size_t referer = whole.find("\"http");
  const std::size_t agent = whole.find("\"agent");
  for (std::size_t length = referer + 1; length < whole.size(); ++length) {
    const bool between = length == agent - 1 || length == agent;  // the referer has ended
    const std::string text = stamped("10.0.0.1", whole.substr(0, length));
    CAPTURE(text);
    LogLine line;
    REQUIRE(parse_log_line(text, line) == nullptr);
    CHECK(line.damaged_tail == !between);
    CHECK(line.client == "10.0.0.1");
    CHECK(line.second == 1'431'857'103);
  }
  for (const char* tail_text : {"  x", " \"x\"y", " \"x", " \"\\\"", " x  y"}) {
    CAPTURE(tail_text);
    LogLine line;
    REQUIRE(parse_log_line(stamped("a", "\"GET /\" 200 12") + tail_text, line) == nullptr);
    CHECK(line.damaged_tail);
  }
  const AccessLog log = read_text(
      stamped("a", "\"GET /\" 200 12 \"x") + "\n" + stamped("a", "\"GET /\" 200 12 \"x\"") + "\n" +
      stamped("b", "\"GET /\" 200 12 \"-\" \"y") + "\n" + stamped("b", "\"GET /\" 200 "));
  CHECK(log.requests.size() == 3);
  CHECK(log.damaged_tails == 2);
  CHECK(log.unreadable == 1);
}

TEST_CASE("any bytes are either a line or refused") {
  test::Random random("any bytes are either a line or refused");
  CAPTURE(random.repeat());
  const std::string good = stamped("10.0.0.1", R"("GET /\"x HTTP/1.1" 200 512 "-" "agent")");
  std::size_t readable = 0;
  const std::size_t rounds = test::scaled(200'000, 5'000);
  for (std::size_t i = 0; i < rounds; ++i) {
    std::string text = good.substr(0, random.one_in(2) ? std::string::npos : random.below(95));
    for (auto n = random.below(3); n > 0 && !text.empty(); --n) {
      text[random.below(text.size())] = static_cast<char>(random.below(256));
    }
    LogLine line;
    if (parse_log_line(text, line) != nullptr) continue;
    ++readable;
    REQUIRE(line.second >= 0);
    REQUIRE(line.second < 4'481'100'000);
    REQUIRE(!line.client.empty());
  }
  CHECK(readable > rounds / 10);
  CHECK(readable < rounds);
}

TEST_CASE("a file is read line by line, whatever ends its lines") {
  const std::string a = stamped("a", "\"GET /\" 200 1");
  const std::string b = stamped("b", "\"GET /\" 200 1");
  for (const std::string& text : {a + "\n" + b + "\n", a + "\r\n" + b + "\r\n", a + "\n\n" + b}) {
    const AccessLog log = read_text(text);
    CHECK(log.requests.size() == 2);
    CHECK(log.clients == std::vector<std::string>{"a", "b"});
    CHECK(log.lines == 2);
    CHECK(log.unreadable == 0);
  }
  CHECK(read_text("").lines == 0);
  CHECK(read_text("\n\n\r\n").lines == 0);
}

TEST_CASE("requests are put in the order of their stamps, equal stamps stay as they stood") {
  const auto at = [](const char* client, const char* time) {
    return std::string(client) + " - - [17/May/2015:10:05:" + time + " +0000]" + tail + "\n";
  };
  const AccessLog log =
      read_text(at("a", "03") + at("b", "01") + at("c", "03") + at("d", "02") + at("e", "01"));
  std::string order;
  for (const LogRequest& request : log.requests) order += log.clients[request.client];
  CHECK(order == "bedac");
  CHECK(log.out_of_order == 3);
}

TEST_CASE("unreadable lines are counted, and the first three are kept with their numbers") {
  const std::string good = stamped("a", "\"GET /\" 200 1") + "\n";
  const AccessLog log = read_text("\n" + good + "b\x1b[31mad\n" + std::string(100, 'w') + " x\n" +
                                  good + " third\nfourth\n");
  CHECK(log.requests.size() == 2);
  CHECK(log.lines == 6);
  CHECK(log.unreadable == 4);
  REQUIRE(log.first_unreadable.size() == 3);
  CHECK(log.first_unreadable[0].number == 3);
  CHECK(log.first_unreadable[0].reason == "there is no second field");
  CHECK(log.first_unreadable[0].excerpt == "b\\x1b[31mad");
  CHECK(log.first_unreadable[1].number == 4);
  CHECK(log.first_unreadable[1].reason == "there is no [stamp]");
  CHECK(log.first_unreadable[1].excerpt == std::string(60, 'w') + "...");
  CHECK(log.first_unreadable[2].number == 6);
  CHECK(log.first_unreadable[2].reason == "the line begins with a space");
}

TEST_CASE("a line of 64 KiB is read and one byte more is not, nor does it disturb the next") {
  const std::string head = stamped("a", "\"GET /");
  const std::string end = "\" 200 1";
  const std::string exact = head + std::string(longest_line - head.size() - end.size(), 'x') + end;
  const std::string longer =
      head + std::string(longest_line - head.size() - end.size() + 1, 'x') + end;
  const AccessLog log = read_text(exact + "\n" + longer + "\n" + std::string(3'000'000, 'y') +
                                  "\n" + stamped("b", "\"GET /\" 200 1"));
  CHECK(log.requests.size() == 2);
  CHECK(log.unreadable == 2);
  REQUIRE(log.first_unreadable.size() == 2);
  CHECK(log.first_unreadable[0].number == 2);
  CHECK_THAT(log.first_unreadable[0].reason, sluice::test::contains_text("longer than 65,536"));
  CHECK(log.first_unreadable[1].number == 3);
}

TEST_CASE("the log's UTC offset is kept if all stamps share it") {
  const auto at = [](const char* zone) {
    return std::string("a - - [17/May/2015:10:05:00 ") + zone + "]" + tail + "\n";
  };
  CHECK(read_text(at("+0200") + at("+0200")).utc_offset == 7'200);
  CHECK(read_text(at("-0330")).utc_offset == -12'600);
  const AccessLog mixed = read_text(at("+0200") + at("+0100"));
  CHECK_FALSE(mixed.one_offset);
  CHECK(mixed.utc_offset == 0);
}
