# What markdown.awk and headers.awk have in common.

# A line of prose in the form that doxygen reads as GitHub does: it takes no code between quotation marks, and no
# apostrophe in code.
function plain(line, parts, count, i, done, quoted) {
  quoted = line ~ /"[^"]*`[^"]*"/
  count = split(line, parts, "`")
  done = ""
  for (i = 1; i <= count; ++i) {
    if (i % 2 == 0 && i < count) {
      done = done code_span(parts[i])
    } else {
      if (quoted) gsub(/"/, "\\&quot;", parts[i])
      done = done (i % 2 ? "" : "`") parts[i]  # code that goes on in the next line
    }
  }
  return done
}

function code_span(code) {
  if (code ~ /^::/) {  # doxygen would take it for a link of its own
    return "<code>\\" code "</code>"
  }
  return code ~ /'/ ? "``" code "``" : "`" code "`"
}
