package benchpipeline

import (
	"context"
	"embed"
	"fmt"
	"os/exec"
	"strings"
)

//go:embed programs
var programs embed.FS

// kind is a training program. Its user asks for the cores that the program takes by itself.
type kind struct {
	name    string
	cores   int    // that it takes by itself
	threads string // variable
	knobs   []string
	needs   string // imports of Python; empty: none
	command string
}

// kinds are a network in PyTorch and trees in scikit-learn, which both take all cores by themselves, and
// a network in Go, which takes one.
func kinds() []kind {
	return []kind{
		{
			"digits", 2, "OMP_NUM_THREADS",
			[]string{"batch_size env=BATCH_SIZE values=16,32,64,128", "width env=WIDTH values=48,64,96"},
			"torch, sklearn",
			`/usr/bin/python3 digits.py --epochs "$EPOCHS" --width "$WIDTH" --state "$STATE"`,
		},
		{
			"boost", 2, "OMP_NUM_THREADS",
			[]string{"rate env=RATE min=0.02 max=0.5 scale=log", "leaves env=LEAVES values=7,15,31,63"},
			"sklearn",
			`/usr/bin/python3 boost.py --epochs "$EPOCHS" --state "$STATE"`,
		},
		{
			"dense", 1, "THREADS",
			[]string{"batch_size env=BATCH_SIZE values=8,12,16,20,24,32,40,48,64,80,96,128,160"},
			"",
			`"$PITCHPIPE_WORKLOAD" dense --scale 1.5 --epochs "$EPOCHS" --state "$STATE"`,
		},
	}
}

// missing is why the kind cannot run here; empty: it can.
func (k kind) missing(ctx context.Context) string {
	if k.needs == "" {
		return ""
	}
	if out, err := exec.CommandContext(ctx, "/usr/bin/python3", "-c", "import "+k.needs).CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return k.name + " is left out: " + lines[len(lines)-1] + " (scripts/setup-jobs installs it)"
	}
	return ""
}

// file is the job file of a search.
func (k kind) file(o Options, cores int, system string, seed int) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("#!/bin/bash")
	say("#SBATCH --job-name=%s", k.name)
	say("#SBATCH --cpus-per-task=%d", cores)
	say("#SBATCH --mem=2G")
	say("#TUNE mode=apply")
	say("#TUNE knob cores values=1,2")
	say("#TUNE knob threads env=%s follows=cores", k.threads)
	for _, knob := range k.knobs {
		say("#TUNE knob %s", knob)
	}
	say(`#TUNE progress pattern='epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+) acc (?P<quality>\S+)'`)
	say("#TUNE quality direction=max")
	say("#TUNE checkpoint signal=USR1 grace=60s exit=85")
	say("#TUNE budget restarts=3 probes=2")
	say("#TUNE search method=asha trials=%d parallel=2 epochs=%d min_epochs=%d eta=3 seed=%d system=%s", o.Trials, o.Epochs, o.Epochs/9, seed, system)
	say("export %s=${%s:-%d} EPOCHS=%d", k.threads, k.threads, cores, o.Epochs)
	say("export OMP_WAIT_POLICY=passive # else other work on the machine multiplies what two threads take")
	say(`mkdir -p "$PITCHPIPE_TRIAL_DIR"`)
	say(`export STATE="$PITCHPIPE_TRIAL_DIR/state"`)
	say("exec %s", k.command)
	return b.String()
}
