package supervise

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
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

func TestTheListenerIsNotToldHowLongAFileOfAnotherUserIs(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "progress")
	if err := os.WriteFile(file, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	own := uint32(os.Getuid()) //nolint:gosec // a user's number
	for uid, want := range map[uint32]string{own: "6", own + 1: "0"} {
		a := attempt{plan: Plan{Listener: []string{"listen"}, Pattern: "epoch", File: file, User: &User{UID: uid}}}
		argv := a.prepareListener().cmd.Args
		if got := argv[slices.Index(argv, "--offset")+1]; got != want {
			t.Errorf("user %d: offset %s, want %s", uid, got, want)
		}
	}
}

// cleanUp waits up to killLimit for a stage whose end was not waited for, and the job holds its
// cores for so long.
func TestTheEndOfAStageThatExecutedNothingIsWaitedForWhicheverWordOfItComesFirst(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"its end", "its report"} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			a := &attempt{job: exec.Command("false"), ended: make(chan error, 1), reported: make(chan fault, 1)} //nolint:noctx // it ends by itself
			if err := a.job.Start(); err != nil {
				t.Fatal(err)
			}
			end := func() { a.ended <- awaitEnd(a.job.Process.Pid) }
			report := func() { a.reported <- fault{Code: codeCannotRun, Detail: "no such directory"} }
			if first == "its end" {
				end()
				go func(ended chan error) {
					for len(ended) > 0 {
						time.Sleep(time.Millisecond)
					}
					report()
				}(a.ended)
			} else {
				report()
			}
			if exit := a.watch(t.Context()); exit.Reason != NotStarted || exit.Code != codeCannotRun {
				t.Errorf("the attempt ended as %+v", exit)
			}
			if a.job.ProcessState == nil {
				t.Error("the end of the stage was not waited for")
			}
		})
	}
}
