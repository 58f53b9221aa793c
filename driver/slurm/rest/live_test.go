package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/rest"
	"pitchpipe/test/slurmcluster"
)

// socketArg has this program ask a slurmrestd once and print the answer: slurmrestd
// serves its own user, which root is not.
const socketArg = "ask-slurmrestd"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == socketArg {
		os.Exit(ask(os.Args[2]))
	}
	os.Exit(m.Run())
}

func ask(socket string) int {
	c := rest.New(socket)
	defer c.Close()
	var last parse.Activity
	for range 3 { // over one connection
		a, err := c.Activity(context.Background())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		last = a
	}
	if err := json.NewEncoder(os.Stdout).Encode(last); err != nil {
		return 1
	}
	return 0
}

func TestARunningSlurmrestdCountsAsSdiagDoes(t *testing.T) {
	t.Parallel()
	c, err := slurmcluster.Start(t.Context(), slurmcluster.Options{})
	if errors.Is(err, slurmcluster.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	const user = slurmcluster.Controller
	socket, err := c.StartRest(t.Context(), user)
	if errors.Is(err, slurmcluster.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err, c.Logs())
	}
	asker := copied(t, c.Home(user))
	run := func(name string, args ...string) string {
		t.Helper()
		out, err := c.Run(t.Context(), user, name, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	compare := func(submitted int) {
		t.Helper()
		// What both say moves on between two questions: the same twice is an answer.
		for {
			var got parse.Activity
			before := sdiag(t, run("sdiag"))
			if err := json.Unmarshal([]byte(run(asker, socketArg, socket)), &got); err != nil {
				t.Fatal(err)
			}
			if after := sdiag(t, run("sdiag")); before != after {
				continue
			}
			if got != before || got.Submitted != submitted {
				t.Errorf("slurmrestd counts %+v, sdiag %+v, and %d were submitted", got, before, submitted)
			}
			return
		}
	}
	// A slurmctld that has just begun says that it counts since 1970.
	if _, err := c.Run(t.Context(), "slurm", "sdiag", "--reset"); err != nil {
		t.Fatal(err)
	}
	compare(0)
	for range 2 {
		run("sbatch", "--wrap", "true", "--output", "/dev/null")
	}
	run("sbatch", "--hold", "--wrap", "true")
	compare(3)

	c.KillRest(user)
	if out, err := c.Run(t.Context(), user, asker, socketArg, socket); err == nil || !strings.Contains(err.Error(), "slurmrestd: ") {
		t.Errorf("a dead slurmrestd answers %q, %v", out, err)
	}
}

func sdiag(t *testing.T, text string) parse.Activity {
	t.Helper()
	a, err := parse.Diagnostics([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// copied is this program where the user can run it.
func copied(t *testing.T, dir string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }() // it was only read
	path := filepath.Join(dir, "rest.test")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(to.Chmod(0o755), to.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}
