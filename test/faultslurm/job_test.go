package faultslurm_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"pitchpipe/test/sandbox"
)

// Ways in which a job answers when it is asked to save.
const (
	wayLeave = "leave"
	waySay   = "say"
	wayEnd   = "end"
)

// job is a batch script, and what is to become of it.
type job struct {
	owner  *owner
	name   string
	way    string        // how it answers when it is asked to save
	exit   bool          // its stanza promises to leave; else to say so
	late   time.Duration // with wayEnd: how long after the signal it ends
	epochs int
	status int  // that it ends with
	plain  bool // without a stanza
	after  *job // it runs once this one succeeded
	wait   bool // sbatch --wait
	by     bool // submitted by the controller

	id     string
	hurry  string     // file that makes it come to its end
	waited chan error // how sbatch --wait ended

	// What the harness did to it; all but the first are asked for when the round is over.
	cancelled atomic.Bool
	held      bool
	limit     string // time limit that its owner set

	sealed bool // Slurm takes no change of it any more
}

const (
	epoch   = 400 * time.Millisecond // each is a message to the exporter
	pattern = `epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+) acc (?P<quality>\S+)`
)

func (j *job) path(suffix string) string { return filepath.Join(j.owner.home, j.name+suffix) }

// script is a job whose knobs change nothing about its epochs, so that settings are
// tried one after another: each is a real move.
func (j *job) script(hurry string) string {
	checkpoint := "#TUNE checkpoint signal=USR1 grace=60s done='^saved$'\n"
	if j.exit {
		checkpoint = "#TUNE checkpoint signal=USR1 grace=60s exit=85\n"
	}
	stanza := "#TUNE mode=apply objective=time\n#TUNE knob cores values=1,2,3\n#TUNE knob batch_size env=BATCH_SIZE values=1,2,3,4,5,6,7,8 default=1 quality=same\n" +
		"#TUNE progress pattern='" + pattern + "'\n" + checkpoint +
		"#TUNE profile warmup_epochs=0 epochs=2\n#TUNE budget restarts=60 probes=50\n"
	if j.plain {
		stanza = ""
	}
	return fmt.Sprintf(`#!/bin/sh
#SBATCH --job-name=%[1]s --output=%[2]s --open-mode=append --requeue
#SBATCH --partition=%[12]s --cpus-per-task=1 --mem=256M --time=04:00:00
%[3]s
exec %[4]s --journal %[5]s --epochs %[6]d --epoch %[7]v --way %[8]s --late %[9]v --status %[10]d --hurry %[11]s
`, j.name, j.path(".out"), stanza, j.owner.w.program("faultjob"), j.path(".journal"), j.epochs, epoch, j.way, j.late, j.status, hurry, j.owner.partition)
}

// errSilent is an sbatch that ended with 0 and printed nothing.
var errSilent = errors.New("sbatch said nothing")

// submit makes the job, once.
func (j *job) submit(hurry string) error {
	script := j.script(hurry)
	j.hurry = hurry
	if j.by {
		return j.submitBy(script)
	}
	err := j.submitOwn(script)
	if errors.Is(err, errSilent) { // and Slurm knows of no such job; seen once in some thousand
		j.owner.w.story.Logf("job %s is submitted again: %v", j.name, err)
		err = j.submitOwn(script)
	}
	return err
}

// submitOwn has the owner submit the job with sbatch.
func (j *job) submitOwn(script string) error {
	args := []string{"--parsable"}
	if j.after != nil {
		args = append(args, "--dependency=afterok:"+j.after.id)
	}
	if j.wait {
		args = append(args, "--wait")
	}
	cmd, err := j.owner.background("sbatch", args...)
	if err != nil {
		return err
	}
	cmd.Stdin = strings.NewReader(script)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		end := cmd.Wait()
		if end == nil && errors.Is(err, io.EOF) {
			err = errSilent
		}
		return j.find(fmt.Errorf("sbatch: %w: %s", errors.Join(err, end), said.String()))
	}
	j.id, _, _ = strings.Cut(strings.TrimSpace(line), ";")
	j.waited = make(chan error, 1)
	go func() { j.waited <- cmd.Wait() }()
	return nil
}

// find looks for the job after an sbatch that was not answered in time, which may have
// made it all the same.
func (j *job) find(why error) error {
	if !unreached(why) && !errors.Is(why, errSilent) {
		return why
	}
	records, err := j.owner.w.records()
	if err != nil {
		return errors.Join(why, err)
	}
	for id, rec := range records {
		if rec["JobName"] == j.name && strings.HasPrefix(rec["UserId"], j.owner.name+"(") {
			j.id, j.wait = id, false
			return nil
		}
	}
	return why
}

// submitBy has the controller submit the job. Who does not know the outcome asks
// again: the same request never makes a second job.
func (j *job) submitBy(script string) error {
	file := j.path(".sbatch")
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil { //nolint:gosec // its owner reads it
		return err
	}
	for end := time.Now().Add(90 * time.Second); ; time.Sleep(300 * time.Millisecond) {
		cmd, err := j.owner.background(j.owner.w.program("pitchpipe"), "run", "--config=", "--socket="+filepath.Join(j.owner.dir, "controller.sock"), "--request="+j.name, file)
		if err != nil {
			return err
		}
		out, err := cmd.Output()
		if err == nil {
			j.id = strings.TrimSpace(string(out))
			return nil
		}
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		if time.Now().After(end) {
			return fmt.Errorf("submit %s: %w", j.name, err)
		}
	}
}

// release ends the owner's hold.
func (j *job) release() error {
	_, err := j.owner.as("scontrol", "release", j.id)
	return err
}

// code is what sbatch --wait ended with; ok is false where it has not yet.
func (j *job) code(limit time.Duration) (code int, ok bool) {
	select {
	case err := <-j.waited:
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return exit.ExitCode(), true
		}
		return 0, err == nil
	case <-time.After(limit):
		return 0, false
	}
}

// hurried reports whether the job is coming to its end.
func (j *job) hurried() bool {
	_, err := os.Stat(j.hurry)
	return err == nil
}

// journal is what the job noted; empty where it never ran.
func (j *job) journal() string {
	text, err := os.ReadFile(j.path(".journal"))
	if err != nil {
		return ""
	}
	return string(text)
}

// said is the end of the job's output.
func (j *job) said() string { return sandbox.Tail(j.path(".out"), 12) + "\n" }
