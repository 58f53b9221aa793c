package slurm_test

import (
	"errors"
	"fmt"
	"strings"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/test/e2e/table"
)

// ticks is a batch script whose epochs wait and are noted in a journal: with each thread
// that it gets they become much shorter, whatever the machine is busy with, so that a job
// which is long enough to be tuned ends soon once it is. Its files carry its job's number.
type ticks struct {
	user, name string
	epochs     int
	status     int  // that it ends with
	live       bool // it gets its threads from a file, else from its environment
	untuned    bool // without a stanza
}

const (
	// epochSeconds is an epoch of one thread, long against how late a busy machine may read
	// a line.
	epochSeconds = 1.5

	// movedEpochs are those of a job that is to be moved: half an hour untuned, and a minute
	// with three threads. Restarts are short against them, even where each takes half a
	// minute.
	movedEpochs  = 1200
	returnEpochs = 15 // of one that returns
)

const pattern = `epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+) acc (?P<quality>\S+)`

func (s *stage) script(j ticks) string {
	way := "env=TEAM"
	if j.live {
		way = "live=true"
	}
	stanza := "#TUNE mode=apply objective=time\n#TUNE knob cores values=1,2,3\n#TUNE knob threads " + way + " follows=cores\n" +
		"#TUNE progress pattern='" + pattern + "'\n#TUNE checkpoint signal=USR1 grace=30s done='^saved, and waiting$'\n" +
		"#TUNE profile warmup_epochs=0 epochs=3\n#TUNE budget restarts=2 probes=2\n"
	if j.untuned {
		stanza = ""
	}
	return fmt.Sprintf(`#!/bin/sh
#SBATCH --job-name=%[1]s --output=%%j.out --open-mode=append --requeue
#SBATCH --cpus-per-task=1 --mem=256M --time=02:00:00
%[2]s
trap : USR1
live=$(tr -d ' \n' <"${PITCHPIPE_SETTINGS:-/dev/null}")
team=${TEAM:-$(echo "$live" | sed -n 's/.*"threads":\([0-9]*\).*/\1/p')}
echo "attempt ${SLURM_RESTART_COUNT:-0} on $SLURM_CPUS_ON_NODE team ${TEAM:-none} live ${live:-none}" >>$SLURM_JOB_ID.attempts
# It says that it saved and waits to be put back into the queue: so it neither ends in
# Slurm's eyes, nor works on for nothing. Where no one comes it goes on.
while :; do
	%[3]s tick --epochs %[4]d --epoch-seconds "$(awk "BEGIN { print %[6]g / ${team:-1} ^ 3 }")" --journal $SLURM_JOB_ID.journal --state $SLURM_JOB_ID.state
	status=$?
	[ $status -eq 85 ] || break
	echo "saved, and waiting"
	sleep 60
done
[ $status -ne 0 ] || status=%[5]d
exit $status
`, j.name, stanza, s.w.path("workload"), j.epochs, j.status, epochSeconds)
}

// submit calls sbatch --wait as the job's user.
func (s *stage) submit(j ticks, args ...string) submission {
	s.t.Helper()
	return s.sbatch(j.user, j.name, s.script(j), nil, append([]string{"--wait"}, args...)...)
}

// discards is how many attempts of a job the controller threw away: none where it does
// not know the job.
func (s *stage) discards(h deployment, id string) int {
	s.t.Helper()
	story, err := h.client.Explain(s.t.Context(), id)
	if err != nil && !errors.Is(err, api.ErrNotFound) {
		s.t.Fatal(err)
	}
	return table.Discards(story)
}

// whole fails the test unless every epoch was done in order and once, or again after a
// discard.
func (s *stage) whole(sub submission, j ticks, discards int) {
	s.t.Helper()
	if did := strings.Fields(s.read(j.user, sub.id+".journal")); !table.InOrder(did, j.epochs, discards) {
		s.t.Errorf("%s: epochs done: %q, want each of 1 to %d in order and once, or again after %d discards", j.name, did, j.epochs, discards)
	}
}
