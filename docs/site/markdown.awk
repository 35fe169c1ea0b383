# The filter through which doxygen reads the guides: explicit ids for the pages and their headings, in GitHub's style,
# and links to them. The markdown stays as GitHub shows it.
#
#   docs/waiting.md                 the page docs-waiting
#   ## Who comes first              its section docs-waiting-who-comes-first
#   [x](waiting.md#who-comes-first) [x](@ref docs-waiting-who-comes-first)
#   [x](examples/plan.cpp)          [x](@ref plan.cpp), the page of an example
#   [x](../include/sluice/key.hpp)  [x](@ref sluice/key.hpp), the page of a header
#   `Decision::remaining`           a link to the class, where a section first names it
#
# doxygen reports a link whose target is missing, so that ./dev docs checks all of them. text.awk comes with this file.

function page_id(path) {
  path = tolower(path)
  sub(/\.md$/, "", path)
  gsub(/\//, "-", path)
  return path
}

function heading_id(text) {
  text = tolower(text)
  gsub(/[^a-z0-9 _-]/, "", text)
  gsub(/ /, "-", text)
  return page_id(file) "-" text
}

# A path relative to the page, made relative to the top folder.
function resolve(path, parts, count, i, done) {
  count = split(folder path, parts, "/")
  done = ""
  for (i = 1; i <= count; ++i) {
    if (parts[i] == "..") sub(/[^\/]+\/$/, "", done)
    else done = done parts[i] (i < count ? "/" : "")
  }
  return done
}

function target(link, hash, anchor) {
  if (link ~ /^[a-z]+:/ || link ~ /\.svg$/) return link
  hash = index(link, "#")
  anchor = hash ? "-" substr(link, hash + 1) : ""
  if (hash) link = substr(link, 1, hash - 1)
  link = link == "" ? file : resolve(link)
  if (link ~ /\.md$/) return "@ref " page_id(link) anchor
  if (link ~ /\.cpp$/) {
    sub(/^docs\/examples\//, "", link)
    return "@ref " link
  }
  if (link ~ /\.hpp$/) {
    sub(/^(sim\/)?include\//, "", link)
    return "@ref " link
  }
  if (link ~ /^docs\/examples/) return "examples.html"
  return "@ref " link  # nothing that the site has: doxygen says so
}

# Links in the form that doxygen reads: the text of its own links is plain.
function with_links(line, done, i, link, text, code) {
  done = ""
  while (match(line, /\]\([^() ]+\)/)) {
    link = target(substr(line, RSTART + 2, RLENGTH - 3))
    i = RSTART
    while (i > 0 && substr(line, i, 1) != "[") --i
    text = substr(line, i + 1, RSTART - i - 1)
    code = text ~ /^`[^`]*`$/
    if (link ~ /^@ref /) gsub(/`/, "", text)
    if (code && link ~ /^@ref /) {
      text = "<code>" link " \"" text "\"</code>"
    } else {
      text = "[" text "](" link ")"
    }
    done = done substr(line, 1, i - 1) text
    line = substr(line, RSTART + RLENGTH)
  }
  return done line
}

# Whether a link's text goes on in the next line.
function is_open(line) {
  gsub(/`[^`]*`/, "", line)
  return line ~ /\[[^]]*$/
}

function print_text(line) { print with_links(plain(with_classes(line))) }

# The first code of a section that begins with the name of a class becomes a link, unless it stands in one; or in a
# table, where doxygen does not read such a link.
function with_classes(line, parts, count, i, name, done, nested) {
  if (line ~ /^\|/) return line
  count = split(line, parts, "`")
  done = ""
  for (i = 1; i <= count; ++i) {
    if (i % 2) {
      nested += gsub(/\[/, "[", parts[i]) - gsub(/\]/, "]", parts[i])
      done = done parts[i]
      continue
    }
    name = parts[i]
    sub(/(::|\{|\().*/, "", name)
    if ((name in classes) && parts[i] ~ /^[A-Za-z_:]+$/ && !nested && !linked[name]++) {
      parts[i] = substr(parts[i], length(name) + 1)
      if (parts[i] != "") parts[i] = "\\" parts[i]
      done = done "<code>@ref sluice::" name " \"" name "\"" parts[i] "</code>"
    } else if (parts[i] ~ /^[a-z_:]+\(\)$/ && i < count) {
      done = done "<code>%" parts[i] "</code>"  # doxygen would link some function of this name
    } else {
      done = done "`" parts[i] "`"
    }
  }
  return done
}

# The classes of namespace sluice, outside detail.
BEGIN {
  command = "find include/sluice sim/include/sluice -name '*.hpp' -not -path '*/detail/*'"
  while ((command | getline header) > 0) {
    scope = ""
    while ((getline line < header) > 0) {
      if (line ~ /^namespace /) {
        scope = line
        if (line !~ /^namespace detail/) outer = line
      } else if (line ~ /^\}  \/\/ namespace detail/) scope = outer
      else if (scope == "namespace sluice {" && line ~ /^(class|struct|enum class) [^;]*$/) {
        sub(/^(class|struct|enum class) (\[\[nodiscard\]\] )?/, "", line)
        sub(/[^A-Za-z].*/, "", line)
        if (line != "") classes[line] = 1
      }
    }
    close(header)
  }
}

NR == 1 {
  file = FILENAME
  root = ENVIRON["PWD"] "/"
  if (index(file, root) == 1) file = substr(file, length(root) + 1)
  folder = file
  sub(/[^\/]*$/, "", folder)
}

pending != "" {
  if ($0 ~ /^[^[]*\]\(/) {
    sub(/^ +/, "")
    $0 = pending " " $0
  } else {
    print_text(pending)
  }
  pending = ""
}

/^ *```/ {
  fenced = !fenced
  print
  next
}

fenced || (/^    / && was_blank) {
  print
  next
}

{ was_blank = $0 == "" }

/^#/ { split("", linked) }

/^# / {
  title = file == "README.md" ? "# Overview" : $0
  print title " {#" page_id(file) "}"
  if (file !~ /^docs\/site\//) print "\n[TOC]"
  next
}

# The main page has its own order of things: its headings do not enter the tree.
/^## / && file ~ /^docs\/site\// {
  print "<h2>" substr($0, 4) "</h2>"
  next
}

/^##+ / {
  level = text = $0
  sub(/ .*/, "", level)
  sub(/^#+ /, "", text)
  id = heading_id(text)
  gsub(/`/, "", text)  # nor are titles marked up
  if (level == "##") sections = 1
  else if (!sections) level = "##"  # doxygen wants a section before a subsection
  print level " " text " {#" id "}"
  next
}

is_open($0) {
  pending = $0
  next
}

{ print_text($0) }

END { if (pending != "") print_text(pending) }
