package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
)

// hogScript holds memory until it is killed.
const hogScript = `exec python3 -c 'import sys,time; x=bytearray(int(sys.argv[1])); open(sys.argv[2],"w").close(); time.sleep(600)' "$@"`

// job writes the script of a behaviour.
func (b *bench) job(t *testing.T, be drivertest.Behaviour) driver.Spec {
	t.Helper()
	name := be.Name
	if name == "" {
		name = "conformance"
	}
	var s strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&s, format+"\n", args...) }
	if be.MissingCommand {
		line("#!/no/such/interpreter")
	} else {
		line("#!/bin/sh")
	}
	line("#SBATCH --job-name=%s", name)
	line("#SBATCH --cpus-per-task=%d", max(be.Cores, 1))
	if be.MemoryBytes > 0 {
		line("#SBATCH --mem=%dK", be.MemoryBytes>>10)
	}
	if be.TimeLimit > 0 {
		line("#SBATCH --time=0:%02d", int(be.TimeLimit.Seconds()))
	}
	if be.ShowEnv != "" || be.ShowSettings {
		line("#TUNE mode=apply")
	}
	if be.ShowEnv != "" {
		line("#TUNE knob shown env=%s values=owner,tuned default=owner", be.ShowEnv)
	}
	if be.ShowSettings {
		line("#TUNE knob rate live=true min=0 max=1")
	}
	line("state=%q/$SLURM_JOB_ID.epoch", b.dir)
	line("want=")
	switch {
	case be.IgnoreSignal:
		line("trap '' USR1")
	case be.Saves:
		line("trap 'want=1' USR1")
	}
	if be.ShowEnv != "" {
		line(`echo "env %s=$%s"`, be.ShowEnv, be.ShowEnv)
	}
	if be.ShowSettings {
		line(`if [ -n "$PITCHPIPE_SETTINGS" ]; then echo "settings $(cat "$PITCHPIPE_SETTINGS")"; else echo settings none; fi`)
	}
	line("hog=")
	if be.UseMemory > 0 {
		line(`rm -f "$state.hog"`)
		line(`sh -c %s hog %d "$state.hog" & hog=$!`, quote(hogScript), be.UseMemory)
		line(`until [ -f "$state.hog" ]; do kill -0 $hog || exit 9; sleep 0.05; done`)
	}
	line("n=0")
	line(`[ -f "$state" ] && n=$(cat "$state")`)
	line("while [ $n -lt %d ]; do", be.Epochs)
	if be.Saves {
		// The signal goes to every process; what an epoch computes is not what saves. One that
		// comes before the trap ends the epoch early.
		line("  [ -e %q ] || { (trap '' USR1; exec sleep %.3f) || :; } 2>/dev/null", b.hurried(), be.Epoch.Seconds())
	} else {
		line("  sleep %.3f", be.Epoch.Seconds())
	}
	line("  n=$((n+1))")
	line("  echo epoch $n/%d", be.Epochs)
	line(`  if [ -n "$want" ]; then`)
	line(`    echo $n >"$state"`)
	exit := savedExit
	if be.LeavesWith != 0 {
		exit = be.LeavesWith
	}
	if be.SaysSaved {
		line("    echo saved; want=")
	} else {
		line("    exit %d", exit)
	}
	line("  fi")
	line("done")
	line(`[ -n "$hog" ] && kill $hog`)
	line("exit %d", be.ExitCode)
	return driver.Spec{Owner: be.Owner, Filename: name + ".sh", Source: []byte(s.String()), Dir: b.dir}
}

// hurried is the file under which the epochs of jobs that save take no time, so that a test
// that is done with a job, however long that took, need not wait for its end.
func (b *bench) hurried() string { return filepath.Join(b.dir, "hurried") }

func (b *bench) hurry(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(b.hurried(), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
