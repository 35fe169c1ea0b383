# The filter through which doxygen reads the headers:
#
# - What a header declares outside namespaces `detail` belongs to the group of its folder (groups.dox).
# - What only the library uses is left out: what stands under "For the library", and the protected members of bases of limiters.
# - In comments, docs/waiting.md becomes a link to that guide, and indented code is highlighted.
#
# Line numbers stay, but for a line that ends such code. text.awk comes with it.

function group(path, name) {
  name = path
  sub(/\.hpp$/, "", name)
  if (name == "limiters/waitable") return "waiting"
  if (name ~ /^(calls\/diagnose|adapters\/prometheus)$/) return "observing"
  if (path ~ /^(limiters|timezone|config)\// || name == "limit_table") return "limiters"
  if (path ~ /^rules\//) return "rules"
  if (path ~ /^extend\//) return "extending"
  if (path ~ /^(calls|http|adapters)\// || name == "http") return "calls"
  if (path ~ /^asio\// || name == "asio") return "asio"
  if (path ~ /^redis\//) return "redis"
  if (path ~ /^sim\//) return "simulation"
  if (path ~ /^testing\// || name == "testing") return "testing"
  if (name ~ /^(time|key|quota|decision|reservation|error|rng|clock|virtual_clock|version)$/) return "values"
  if (name ~ /^(store|store_handle|plan|decide|memory_store|virtual_store|fallback_store|prefetch_store|owned_outcome|circuit_breaker)$/) return "stores"
  if (name ~ /^(wait_options|stop_token)$/) return "waiting"
  if (name ~ /^(observer|observed_store|shadow_store|metrics)$/) return "observing"
  if (name == "detail/arguments") return "values"
  return ""
}

# docs/waiting.md in a comment becomes a link to that guide, by its title.
function with_guides(line, done, path, title, id) {
  done = ""
  while (match(line, /docs\/[a-z_-]+\.md/)) {
    path = substr(line, RSTART, RLENGTH)
    title = path
    if ((getline title < path) > 0) sub(/^# /, "", title)
    close(path)
    id = path
    sub(/\.md$/, "", id)
    gsub(/\//, "-", id)
    done = done substr(line, 1, RSTART - 1) "[" title "](@ref " id ")"
    line = substr(line, RSTART + RLENGTH)
  }
  return done line
}

# Prints the comment that was held back.
function print_comments(i, code, indent) {
  indent = held ? substr(comments[1], 1, index(comments[1], "/") - 1) : ""
  for (i = 1; i <= held; ++i) {
    if (code && is_blank(comments[i])) {
      if (is_code(comments[i + 1])) print comments[i]
      else { print comments[i] " ```"; code = 0 }
    } else if (!code && is_blank(comments[i]) && is_cpp(i + 1)) {
      print comments[i] " ```cpp"
      code = 1
    } else if (is_code(comments[i]) || comments[i] !~ /^ *\/\/\//) {
      print comments[i]
    } else {
      if (code) print indent "/// ```"
      code = 0
      print plain(with_guides(comments[i]))
    }
  }
  if (code) print indent "/// ```"
  for (i in comments) delete comments[i]
  held = 0
}

function is_blank(line) { return line ~ /^ *\/\/\/ *$/ }
function is_code(line) { return line ~ /^ *\/\/\/     / }
function is_cpp(i) {
  for (; i <= held && is_code(comments[i]); ++i) if (comments[i] ~ /[;{"]/) return 1
  return 0
}

NR == 1 {
  path = FILENAME
  sub(/^.*include\/sluice\//, "", path)
  name = group(path)
}

# A header of macros has no namespace.
NR == 1 && path == "version.hpp" {
  print "/** \\addtogroup " name
  opening = opened = 1
  next
}

opening {
  $0 = "@{ */ " $0
  opening = 0
}

/^namespace sluice[a-z_:]* \{/ && !/detail/ {
  print_comments()
  # An unknown header: doxygen reports what follows, and ./dev docs fails.
  if (name == "") print $0 " /** \\file no_group_in_headers_awk */"
  else print $0 " /** \\addtogroup " name
  opening = opened = name != ""
  next
}

opened && /^\}  \/\/ namespace sluice/ {
  $0 = "/** @} */ " $0
  opened = 0
}

# A comment is held back until what it belongs to is known.
/^ *\/\/\// && !opening {
  comments[++held] = $0
  next
}

/^  \/\/ For the library; see / { for_library = 1 }
for_library {
  for_library = /[;.]$/
  print ""
  next
}

# The definition of a member, else taken for a function of the group.
/^inline [A-Za-z:]+ [A-Z][A-Za-z]*::[a-z_]+\(/ {
  hidden = "}"
}

hidden != "" {
  print ""
  if (index($0, hidden) == 1) hidden = ""
  next
}

{ print_comments() }

END { if (opened) print "/** @} */" }

path ~ /^limiters\/(keyed_limiter|waitable)/ && /^ protected:/ { sub(/protected/, "private") }

/\/\/\/</ {
  i = index($0, "///<")
  $0 = substr($0, 1, i - 1) plain(substr($0, i))
}

{ print }
