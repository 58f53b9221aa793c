package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pitchpipe/test/slurmcluster"
)

// elastic is the partition whose jobs share two cores.
const elastic = "elastic"

// TestElasticJobsShareTheCoresOfAPartition: jobs that ask for 2, 1 and 1 cores come to a partition on
// whose node two are free. Slurm would run the first one alone; its user's controller has it give up a core, so that the others
// need not wait for its end, and take it back when they have ended.
func TestElasticJobsShareTheCoresOfAPartition(t *testing.T) {
	if testing.Short() {
		t.Skip("runs real work for minutes: make check runs it")
	}
	s := newStage(t)
	s.as("root", "scontrol", "create", "PartitionName="+elastic, "Nodes="+s.node(2), "State=UP")
	t.Cleanup(func() {
		if out, err := s.c.Run(context.WithoutCancel(t.Context()), "root", "scontrol", "delete", "PartitionName="+elastic); err != nil {
			t.Error(out, err)
		}
	})
	user := slurmcluster.Beta
	others := s.sbatch(user, "others", "#!/bin/sh\nsleep 3600\n", nil, "--partition="+plainPartition, "--nodelist="+s.node(2), "--cpus-per-task=14", "--mem=64M", "--output=/dev/null")
	t.Cleanup(func() { s.c.Run(context.WithoutCancel(t.Context()), user, "scancel", others.id) }) //nolint:errcheck // the cluster ends with it
	dir := filepath.Join(s.c.Home(user), elastic)
	s.as(user, "mkdir", "-m", "700", dir)
	site := filepath.Join(dir, "site.yaml")
	rules := "default: {max_mode: apply, above_request: true, control: 0}\npartition: {" + elastic + ": {allocate: 2}}\n"
	if err := os.WriteFile(site, []byte(rules), 0o644); err != nil { //nolint:gosec // the user's controller reads it
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "controller.sock")
	s.spawnAs(user, "elastic.log", "pitchpipe", "controller", "--config=", "--driver=slurm", "--slurm.partitions="+elastic, "--slurm.interval=300ms",
		"--slurm.wake="+s.w.path("hooks", "wake"), "--socket="+socket, "--state="+filepath.Join(dir, "state"), "--exporter.socket="+s.socket, "--listen=", "--site="+site, "--resync=1s")
	h := s.open("owner", elastic, user, socket)

	jobs := []struct {
		name          string
		cores, epochs int
	}{{"long", 2, 300}, {"short", 1, 40}, {"brief", 1, 40}}
	var subs []submission
	for _, j := range jobs {
		script := fmt.Sprintf(`#!/bin/sh
#SBATCH --job-name=%[1]s --output=%%j.out --open-mode=append --requeue
#SBATCH --partition=%[2]s --cpus-per-task=%[3]d --mem=64M --time=30
#TUNE mode=apply objective=time
#TUNE knob cores values=1,2
#TUNE progress pattern='%[4]s'
#TUNE checkpoint signal=USR1 grace=60s exit=85
echo "$(date +%%s) on $SLURM_CPUS_ON_NODE" >>$SLURM_JOB_ID.attempts
trap 'asked=1' USR1
n=$(cat $SLURM_JOB_ID.state 2>/dev/null || echo 0)
while [ $n -lt %[5]d ]; do
	sleep 0.$((4000 / SLURM_CPUS_ON_NODE)) # twice as fast on two cores, whatever machine this is
	[ -z "$asked" ] || { echo $n >$SLURM_JOB_ID.state; exit 85; }
	n=$((n + 1))
	echo "epoch $n/%[5]d loss 1 acc 0.9"
done
`, j.name, elastic, j.cores, pattern, j.epochs)
		subs = append(subs, s.sbatch(user, j.name, script, nil))
	}
	s.follow(h, subs...)
	s.await("the second job to begin before the first ends", func() error {
		first, second := s.record(subs[0].id)["JobState"], s.record(subs[1].id)["JobState"]
		if first == "COMPLETED" {
			t.Fatal("the first job ended before the second one began")
		}
		if second == "PENDING" {
			return errors.New(first + ", " + second)
		}
		return nil
	})
	for i, sub := range subs {
		s.seenEnded(h, sub)
		if got := strings.Count(s.read(user, sub.id+".out"), fmt.Sprintf("epoch %d/%[1]d ", jobs[i].epochs)); got != 1 {
			t.Errorf("%s ended %d times, want once:\n%s", sub.name, got, s.read(user, sub.id+".out"))
		}
		t.Logf("%s\n%s\n%s", sub.name, s.read(user, sub.id+".attempts"), s.as(user, s.w.path("pitchpipe"), "explain", sub.id, "--socket", socket))
	}
	attempts := s.read(user, subs[0].id+".attempts")
	if one, two := strings.Index(attempts, "on 1\n"), strings.LastIndex(attempts, "on 2\n"); one < 0 || two < one {
		t.Errorf("the long job ran\n%s want two cores, then one beside the others, then two again", attempts)
	}
}
