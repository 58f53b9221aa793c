package supervise

import (
	"os/exec"
	"testing"
)

func TestHowAnAttemptEndedThatWasToBeDiscarded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script string
		want         Reason
		code         int
	}{
		{"it ended well before it was killed", "exit 0", Exited, 0},
		{"it failed before it was killed", "exit 3", Exited, 3},
		{"it died of its own signal before it was killed", "kill -SEGV $$", Signalled, 139},
		{"it was killed", "kill -KILL $$", Stopped, 137},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := attempt{ending: Stopped, stop: StopDiscarded, job: exec.CommandContext(t.Context(), "sh", "-c", tt.script)}
			if got := a.exit(a.job.Run()); got.Reason != tt.want || got.Code != tt.code {
				t.Errorf("exit %+v, want %s with %d", got, tt.want, tt.code)
			}
		})
	}
}
