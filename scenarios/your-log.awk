# Makes scenarios/your-log.csv, a synthetic hour of an API: awk -f your-log.awk >your-log.csv
#
# Sixty clients each come back now and then for a visit of a few calls, one every second or two, as
# a browser or a job makes them; one scraper calls three times a second for two minutes. The draws
# are those of S. Park and K. Miller's generator, in whole numbers, so that every awk makes the same
# file.
function below(n) {
  state = state * 16807 % 2147483647
  return state % n
}

BEGIN {
  state = 4
  clients = 60
  print "# Synthetic, made by your-log.awk: an hour of 60 clients who come in visits, and a scraper."
  print "t,key"
  for (second = 0; second < 3600; second++) {
    for (client = 1; client <= clients; client++) {
      if (left[client] == 0 && below(1000) == 0) left[client] = 3 + below(14)
      if (left[client] == 0 || below(5) < 2) continue
      left[client]--
      printf "%d.%03d,client%02d\n", second, client * 15, client
    }
    if (second < 1500 || second >= 1620) continue
    for (call = 0; call < 3; call++) printf "%d.%03d,scraper\n", second, 970 + call * 10
  }
}
