package slurm_test

import (
	"fmt"
	"strings"

	"pitchpipe/test/slurmcluster"
)

// widening says after each epoch how well it fits, which each widening that it has taken makes better.
// Before an epoch it reads its settings file, which is not there before the first request.
const widening = `#!/bin/sh
#SBATCH --job-name=widening --output=%j.out --cpus-per-task=1 --mem=64M --time=10
#TUNE mode=apply
#TUNE progress pattern='epoch (?P<epoch>\d+)/(?P<total>\d+) fit (?P<quality>\S+)'
#TUNE quality direction=max
#TUNE action widen max=2 explore=1
taken=0
for epoch in $(seq 12); do
	wanted=$(sed -n 's/.*"widen":\([0-9]*\).*/\1/p' "$PITCHPIPE_SETTINGS" 2>/dev/null)
	while [ $taken -lt ${wanted:-0} ]; do
		taken=$((taken + 1))
		echo "widened before $epoch"
	done
	sleep 1
	echo "epoch $epoch/12 fit 0.$((60 + 10 * taken + epoch / 2))"
done
`

// adaptStory runs three jobs of a kind: one goes on undisturbed, the second may try the action, and the
// third takes it by what these two showed. Another controller goes on after the third one's first action.
func (s *stage) adaptStory(h deployment) {
	reasons := []string{"is compared", "its owner allows one more try", "ended better than those without it"}
	for i, reason := range reasons {
		sub := s.sbatch(slurmcluster.Alpha, "widening", widening, nil, "--partition="+h.partition, "--nodelist="+s.node(2))
		s.follow(h, sub)
		if i == 2 {
			s.await("its first action", func() error {
				if out := s.read(sub.user, sub.id+".out"); !strings.Contains(out, "widened") {
					return fmt.Errorf("output: %s", out)
				}
				return nil
			})
			h.kill()
			h = h.again(s)
		}
		s.seenEnded(h, sub)
		out := s.read(sub.user, sub.id+".out")
		if n, most := strings.Count(out, "widened"), i; (n > 0) != (most > 0) || n > most || strings.Count(out, "epoch ") != 12 {
			s.t.Errorf("run %d took the action %d times, want %d at most, and each epoch once:\n%s", i, n, most, out)
		}
		said := s.as(h.user, s.w.path("pitchpipe"), "explain", "-v", sub.id, "--socket", h.socket)
		if i > 0 && (!strings.Contains(said, reason) || !strings.Contains(said, "asked to bring its actions to widen=")) {
			s.t.Errorf("explain of run %d does not say %q:\n%s", i, reason, said)
		}
	}
}
