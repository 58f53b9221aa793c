// Package rest asks a slurmrestd that runs beside this process whether anything happened.
//
// The path of its Unix socket goes in; the counters of slurmctld come out, the same that sdiag
// prints (parse.Activity), by a request over a connection that stays open instead of a new
// process each time.
//
// It asks for the statistics alone. GET jobs?update_time answers "unchanged" only while
// no job at all has changed, and else with every job as JSON: at 10,000 jobs that took
// slurmrestd 3 s, and the scheduler changes some job at each look at its queue.
//
// slurmrestd serves its own user and root on a socket, so it runs as the user of this
// process: another's socket is refused, and no token is needed or kept. The package
// submits nothing, changes nothing, and an answer makes a look at the queue sooner or
// later, never wrong: after an error the driver asks sdiag.
package rest
