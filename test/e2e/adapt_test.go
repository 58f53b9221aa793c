package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pitchpipe/controller/daemon/api"
)

// widening fits a curve with a few cosines by gradient descent. Before each epoch it reads its
// settings file, and for each widening that it is to have taken it adds two cosines of weight 0,
// which change nothing before they are trained.
const widening = `#!/bin/sh
#SBATCH --job-name=cosines
#SBATCH --cpus-per-task=1
#SBATCH --mem=256M
#TUNE mode=apply
#TUNE progress pattern='epoch (?P<epoch>\d+)/(?P<total>\d+) fit (?P<quality>\S+)'
#TUNE quality direction=max
#TUNE action widen max=2 explore=1
exec awk '
BEGIN {
	file = ENVIRON["PITCHPIPE_SETTINGS"]; width = 2; pi = atan2(0, -1); epochs = 16
	for (e = 1; e <= epochs; e++) {
		text = ""; while ((getline row < file) > 0) text = text row; close(file)
		wanted = match(text, /"widen":[0-9]+/) ? substr(text, RSTART + 8, RLENGTH - 8) + 0 : 0
		for (; taken < wanted; taken++) { width += 2; print "widened before " e }
		for (i = 0; i < 2000; i++) {
			x = (i * 0.618034) % 1; y = sin(6 * x) + x; f = 0
			for (k = 0; k < width; k++) f += w[k] * cos(k * pi * x)
			for (k = 0; k < width; k++) w[k] += 0.05 * (y - f) * cos(k * pi * x)
		}
		wrong = all = 0
		for (i = 0; i < 200; i++) {
			x = i / 200; y = sin(6 * x) + x; f = 0
			for (k = 0; k < width; k++) f += w[k] * cos(k * pi * x)
			wrong += (y - f) ^ 2; all += y ^ 2
		}
		system("sleep 0.3")
		print "epoch " e "/" epochs " fit " 1 - wrong / all; fflush()
	}
}'
`

// TestAnActionIsTriedOnceAndTakenOnceItIsKnownToHelp runs three jobs of a kind: one goes on
// undisturbed, the second may try the action, and the third takes it by what these two showed. The
// controller dies after the third one's first action.
func TestAnActionIsTriedOnceAndTakenOnceItIsKnownToHelp(t *testing.T) {
	t.Parallel()
	s := newFlow(t)
	s.open()
	file := filepath.Join(s.dir, "cosines.sbatch")
	if err := os.WriteFile(file, []byte(widening), 0o600); err != nil {
		t.Fatal(err)
	}
	reasons := []string{"is compared", "its owner allows one more try", "ended better than those without it"}
	var fits [3]float64
	for i := range fits {
		id := strings.TrimSpace(s.ok("run", file, "--dir", s.dir))
		if i == 2 {
			s.await("its first action", func() error {
				if text := s.ok("logs", id); !strings.Contains(text, "widened") {
					return fmt.Errorf("output: %s", text)
				}
				return nil
			})
			s.kill()
			s.open()
		}
		if job := s.until(id, "to end", ended); job.State != "succeeded" {
			t.Fatalf("run %d: %+v", i, job)
		}
		output := s.ok("logs", id)
		if n, want := strings.Count(output, "widened"), []int{0, 1, 2}[i]; min(n, 1) != min(want, 1) || n > want {
			t.Errorf("run %d took the action %d times, want %d at most, and never one twice:\n%s", i, n, want, output)
		}
		last := output[strings.LastIndex(output, "fit ")+len("fit "):]
		if _, err := fmt.Sscan(last, &fits[i]); err != nil {
			t.Fatal(err)
		}
		text := s.ok("explain", "-v", id)
		if i > 0 && (!strings.Contains(text, reasons[i]) || !strings.Contains(text, "asked to bring its actions to widen=")) {
			t.Errorf("explain of run %d does not say %q:\n%s", i, reasons[i], text)
		}
		for _, r := range told[api.Story](s, "explain", id, "--replay").Replays {
			if !r.Same {
				t.Errorf("run %d: a decision is made otherwise now: %+v", i, r)
			}
		}
	}
	if fits[1] <= fits[0] || fits[2] <= fits[0] {
		t.Errorf("fits %.4f: want both that took the action above the first", fits)
	}
}
