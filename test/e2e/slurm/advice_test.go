package slurm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/controller/advise"
	"pitchpipe/test/slurmcluster"
)

// advised and unadvised are partitions of one node each, with the same jobs.
const advised, unadvised = "advised", "unadvised"

const (
	queued  = 60 // jobs of each partition that ask for half an hour
	outlive = 65 // seconds that one of them runs: more than the minute that it is given

	gap = 40 * time.Second // that the long jobs run on when every job is advised, however busy the machine is
)

// narrow is a batch script that runs for a few seconds and says how often it began and ended.
func narrow(partition, name string, seconds int) string {
	return fmt.Sprintf(`sbatch --parsable -p %s -J %s -n 1 -t 30 --requeue -o /dev/null --wrap 'echo began >>%[2]s.ran; sleep %d; echo ended >>%[2]s.ran'`, partition, name, seconds)
}

// TestShorterTimeLimitsLetJobsOfALongQueueStartSooner: on one node of two the site applies advice.
// A wide job waits for a long one, and narrow jobs with overestimated time limits wait behind it.
// The controller, which has seen in the accounting how long such jobs run, has their limits
// lowered, so that they run in the gap, and is killed. One that outlives its limit is given its
// owner's by the broker. On the other node the same jobs wait.
func TestShorterTimeLimitsLetJobsOfALongQueueStartSooner(t *testing.T) {
	if testing.Short() {
		t.Skip("plays a queue of 60 jobs twice: make check runs it")
	}
	s := &stage{t: t, w: shared, c: shared.get(t)}
	alpha, beta := slurmcluster.Alpha, slurmcluster.Beta
	for i, partition := range []string{unadvised, advised} {
		s.as("root", "scontrol", "create", "PartitionName="+partition, "Nodes="+s.node(i+1), "State=UP")
		t.Cleanup(func() {
			if out, err := s.c.Run(context.WithoutCancel(t.Context()), "root", "scontrol", "delete", "PartitionName="+partition); err != nil {
				t.Error(out, err)
			}
		})
	}
	t.Log("the past: jobs of the same user that ended long before their limits")
	for _, partition := range []string{unadvised, advised} {
		s.as(alpha, "sh", "-c", strings.Join([]string{"for i in $(seq 50); do " + narrow(partition, "past", 2), "done"}, "; "))
	}
	s.drained(alpha)

	run, site := s.folder("advice-run", slurmcluster.Operator), s.folder("advice-site", slurmcluster.Controller)
	dir := s.folder("advice-broker", slurmcluster.Operator)
	socket := filepath.Join(run, "broker.sock")
	s.spawnAs(slurmcluster.Operator, "advice-broker.log", "pitchpipe", "broker", "--config=", "--broker.socket="+socket, "--broker.dir="+dir,
		"--broker.controller="+slurmcluster.Controller, "--broker.advice="+advised, "--broker.raise=20s")
	s.await("the broker", func() error { _, err := os.Stat(socket); return err })
	rules := "default: {advice_margin: 30s}\npartition: {" + advised + ": {advice: apply}}\n"
	if err := os.WriteFile(filepath.Join(site, "site.yaml"), []byte(rules), 0o644); err != nil { //nolint:gosec // the controller reads it
		t.Fatal(err)
	}
	kill := s.spawnAs(slurmcluster.Controller, "advice-site.log", "pitchpipe", "controller", "--config=", "--driver=slurm", "--slurm.mode=site", "--slurm.plugin=true",
		"--slurm.partitions="+advised+","+unadvised, "--slurm.broker="+socket, "--socket="+filepath.Join(site, "controller.sock"), "--listen=",
		"--state="+filepath.Join(s.c.Home(slurmcluster.Controller), "advice"), "--site="+filepath.Join(site, "site.yaml"), "--resync=1s")
	h := s.open("site", advised, alpha, filepath.Join(site, "controller.sock"))

	began := time.Now()
	for _, partition := range []string{unadvised, advised} { // of a user of whom too little is known
		s.as(beta, "sbatch", "-p", partition, "-J", "long-"+partition, "-n", "4", "-t", "10", "-o", "/dev/null", "--wrap", "until [ -e gap-ends ]; do sleep 0.5; done")
		s.as(beta, "sbatch", "-p", partition, "-J", "wide-"+partition, "-n", "16", "-t", "2", "-o", "/dev/null", "--wrap", "sleep 1")
	}
	var script strings.Builder
	for n := range queued {
		for _, partition := range []string{unadvised, advised} {
			seconds := 3
			if n == 0 {
				seconds = outlive
			}
			script.WriteString(narrow(partition, fmt.Sprintf("%s-%d", partition, n), seconds) + "\n")
		}
	}
	s.as(alpha, "sh", "-c", script.String())
	t.Logf("submitted after %v", time.Since(began).Round(time.Second))

	s.await("every job is advised", func() error { return s.given(h) })
	t.Logf("advised after %v", time.Since(began).Round(time.Second))
	kill()
	time.Sleep(gap)
	s.as(beta, "touch", "gap-ends")
	s.drained(alpha)
	s.drained(beta)
	t.Logf("ended after %v", time.Since(began).Round(time.Second))

	wait := map[string]time.Duration{}
	limits := map[string]int{}
	for line := range strings.Lines(s.as("slurm", "sacct", "-a", "-n", "-P", "-X", "-D", "-S", began.Add(-time.Second).UTC().Format("2006-01-02T15:04:05"),
		"-r", advised+","+unadvised, "-o", "JobID,JobName,Partition,State,Submit,Start,TimelimitRaw")) {
		f := strings.Split(strings.TrimSpace(line), "|")
		submit, err := time.Parse("2006-01-02T15:04:05", f[4])
		start, err2 := time.Parse("2006-01-02T15:04:05", f[5])
		if err := errors.Join(err, err2); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if f[1] == "past" {
			continue
		}
		if f[3] != "COMPLETED" {
			t.Errorf("job %s (%s) is %s", f[0], f[1], f[3])
		}
		if wait[f[2]] += start.Sub(submit) / (queued + 2); strings.HasPrefix(f[1], "wide") {
			t.Logf("the wide job of partition %s waits %v", f[2], start.Sub(submit))
		}
		limits[f[2]+" "+f[6]]++
		if n := s.read(alpha, f[1]+".ran"); strings.Contains(f[1], "advised-") && !strings.HasPrefix(f[1], "long") && !strings.HasPrefix(f[1], "wide") && n != "began\nended\n" {
			t.Errorf("job %s (%s) ran %q, want to its end once", f[0], f[1], n)
		}
	}
	t.Logf("mean wait %v of jobs with advice, %v of the same without; jobs by partition and minutes: %v", wait[advised], wait[unadvised], limits)
	want := map[string]int{advised + " 1": queued - 1, advised + " 30": 1, unadvised + " 30": queued, advised + " 10": 1, unadvised + " 10": 1, advised + " 2": 1, unadvised + " 2": 1}
	if fmt.Sprint(limits) != fmt.Sprint(want) {
		t.Errorf("jobs by partition and limit in minutes: %v, want %v", limits, want)
	}
	if wait[advised] >= wait[unadvised] {
		t.Error("advice made no wait shorter")
	}
}

// given reports whether each narrow job is advised: the broker acted on those of one partition,
// and people see it of the other.
func (s *stage) given(h deployment) error {
	s.t.Helper()
	out := s.as(h.user, s.w.path("pitchpipe"), "advice", "--json", "--socket="+h.socket)
	var found struct{ Rows []advise.Item }
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	recommended := 0
	for _, r := range found.Rows {
		switch {
		case r.State == advise.Refused:
			s.t.Fatalf("refused: %+v", r)
		case r.Partition == unadvised && r.State == advise.Recommended && r.From == 1800 && r.To == 60:
			recommended++
		}
	}
	audit, err := os.ReadFile(s.w.path("advice-broker", "audit.jsonl"))
	if acted := strings.Count(string(audit), `"verb":"advise"`); err != nil || acted < queued || recommended < queued {
		return fmt.Errorf("%d jobs are advised, and %d would be: %w", acted, recommended, err)
	}
	return nil
}

// drained waits until a user has no job in the queue.
func (s *stage) drained(user string) {
	s.t.Helper()
	s.await("the jobs of "+user, func() error {
		time.Sleep(500 * time.Millisecond)
		if left := s.as("slurm", "squeue", "-h", "-u", user, "-o", "%i %T"); left != "" {
			return errors.New(left)
		}
		return nil
	})
}
