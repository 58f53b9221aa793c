package limits_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/driver/slurm/limits"
	"pitchpipe/driver/slurm/parse"
)

func none(used uint64) parse.Bound { return parse.Bound{Limit: parse.Unlimited, Used: used} }

// open are limits with none set.
func open() parse.Limits {
	return parse.Limits{
		"GrpTRES=cpu": none(0), "GrpTRES=mem": none(0), "GrpTRES=billing": none(0), "GrpTRES=energy": none(0),
		"GrpTRESMins=cpu": none(0), "GrpTRESRunMins=cpu": none(0), "GrpWall": none(0),
	}
}

// cluster is root > science > physics > alice, with one QOS and one partition.
func cluster() (parse.Assignments, []parse.Partition) {
	return parse.Assignments{
			Associations: []parse.Association{
				{ID: 1, Account: "root", Limits: open()},
				{ID: 2, Account: "science", Parent: 1, Limits: open()},
				{ID: 3, Account: "physics", Parent: 2, Limits: open()},
				{ID: 4, Account: "physics", User: "alice", UID: 7, Limits: open()},
				{ID: 5, Account: "physics", User: "bob", UID: 8, Limits: open()},
			},
			QOS: []parse.QOS{
				{Name: "normal", Limits: open(), Users: map[string]parse.Limits{"7": nil}, Accounts: map[string]parse.Limits{"physics": nil}},
				{Name: "part", Limits: open(), Users: map[string]parse.Limits{"7": nil}, Accounts: map[string]parse.Limits{"physics": nil}},
			},
		},
		[]parse.Partition{{Name: "main"}, {Name: "other", QOS: "part"}}
}

func alice() limits.Job {
	return limits.Job{UID: 7, Account: "physics", QOS: "normal", Partitions: []string{"main"}}
}

// beside is a job that waits, of 150 MiB and half an hour.
func beside(uid uint32, account, qos string, cores int) limits.Job {
	return limits.Job{UID: uid, Account: account, QOS: qos, Partitions: []string{"main"}, Has: limits.Size{Cores: cores, MiB: 150, Minutes: 30}}
}

type world struct {
	have  *parse.Assignments
	parts []parse.Partition
	job   *limits.Job
	size  *limits.Size
}

func (w world) user() parse.Limits { return w.have.Associations[3].Limits }

func TestWhatPassesTheLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(w world)
		want   string // of the error; empty = it passes; "unknown"
	}{
		{"no limit at all", func(world) {}, ""},
		{"what fits beside the others", func(w world) { w.user()["GrpTRES=cpu"] = parse.Bound{Limit: 6, Used: 2} }, ""},
		{
			"one core too many beside the others", func(w world) { w.user()["GrpTRES=cpu"] = parse.Bound{Limit: 6, Used: 3} },
			"the association of user alice in account physics has GrpTRES=cpu 6, of which other jobs use 3, and the job would add 4",
		},
		{
			"others that are above the limit already", func(w world) { w.user()["GrpTRES=cpu"] = parse.Bound{Limit: 2, Used: 6} },
			"GrpTRES=cpu 2, of which other jobs use 6",
		},
		{"a limit of an account above", func(w world) { w.have.Associations[1].Limits["GrpTRES=mem"] = parse.Bound{Limit: 100} }, "account science has GrpTRES=mem 100"},
		{
			"what the job itself uses while it runs", func(w world) {
				w.user()["GrpTRES=cpu"] = parse.Bound{Limit: 6, Used: 4}
				w.job.Has = limits.Size{Cores: 2, MiB: 100}
			}, "",
		},
		{
			"what it uses beside others", func(w world) {
				w.user()["GrpTRES=cpu"] = parse.Bound{Limit: 6, Used: 5}
				w.job.Has = limits.Size{Cores: 2, MiB: 100}
			}, "of which other jobs use 3",
		},
		{"a limit of another user", func(w world) { w.have.Associations[4].Limits["GrpTRES=cpu"] = parse.Bound{Limit: 1} }, ""},
		{
			"another job of the user that waits and will start", func(w world) {
				w.user()["GrpTRES=cpu"] = parse.Bound{Limit: 6}
				w.job.Beside = []limits.Job{beside(7, "physics", "normal", 3)}
			}, "the association of user alice in account physics has GrpTRES=cpu 6, of which other jobs use 3, and the job would add 4",
		},
		{
			"jobs that wait elsewhere", func(w world) {
				w.user()["GrpTRES=cpu"] = parse.Bound{Limit: 6}
				w.have.Associations[2].Limits["GrpTRES=cpu"] = parse.Bound{Limit: 6}
				w.have.QOS[0].Limits["GrpTRES=mem"] = parse.Bound{Limit: 300}
				w.job.Beside = []limits.Job{beside(8, "science", "high", 3)}
			}, "",
		},
		{
			"a job of a neighbour that waits, under the limit of an account above", func(w world) {
				w.have.Associations[1].Limits["GrpTRES=mem"] = parse.Bound{Limit: 300}
				w.job.Beside = []limits.Job{beside(8, "physics", "high", 3)}
			}, "account science has GrpTRES=mem 300, of which other jobs use 150",
		},
		{
			"jobs of a QOS that wait", func(w world) {
				w.have.QOS[0].Limits["GrpTRES=cpu"] = parse.Bound{Limit: 9, Used: 2}
				w.job.Beside = []limits.Job{beside(8, "other", "normal", 3), beside(9, "other", "normal", 1)}
			}, "QOS normal has GrpTRES=cpu 9, of which other jobs use 6",
		},
		{
			"what the user has waiting in a QOS", func(w world) {
				w.have.QOS[0].Users["7"] = parse.Limits{"MaxTRESPerUser=cpu": {Limit: 5}}
				w.job.Beside = []limits.Job{beside(7, "other", "normal", 2)}
			}, "MaxTRESPerUser=cpu 5, of which other jobs use 2",
		},
		{
			"what the account has waiting in a QOS", func(w world) {
				w.have.QOS[0].Accounts["physics"] = parse.Limits{"MaxTRESPerAccount=cpu": {Limit: 5}}
				w.job.Beside = []limits.Job{beside(9, "physics", "normal", 2)}
			}, "MaxTRESPerAccount=cpu 5, of which other jobs use 2",
		},
		{
			"minutes of what waits", func(w world) {
				w.user()["GrpTRESMins=cpu"] = parse.Bound{Limit: 300}
				w.job.Beside = []limits.Job{beside(7, "physics", "normal", 3)}
			}, "GrpTRESMins=cpu 300, of which other jobs use 90",
		},
		{
			"wall time of what waits", func(w world) {
				w.have.Associations[2].Limits["GrpWall"] = parse.Bound{Limit: 80}
				w.job.Beside = []limits.Job{beside(9, "physics", "normal", 3)}
			}, "account physics has GrpWall 80, of which other jobs use 30",
		},
		{
			"what waits in a partition with the QOS", func(w world) {
				w.job.Partitions = []string{"other"}
				w.have.QOS[1].Limits["GrpTRES=cpu"] = parse.Bound{Limit: 6}
				theirs := beside(9, "other", "high", 3)
				theirs.Partitions = []string{"other"}
				w.job.Beside = []limits.Job{theirs}
			}, "QOS part has GrpTRES=cpu 6, of which other jobs use 3",
		},
		{
			"a memory of what waits that no one knows", func(w world) {
				w.user()["GrpTRES=mem"] = parse.Bound{Limit: 900}
				theirs := beside(7, "physics", "normal", 3)
				theirs.Has.MiB = 0
				w.job.Beside = []limits.Job{theirs}
			}, "unknown",
		},
		{
			"the limits of one job count no other", func(w world) {
				w.user()["MaxTRESPerJob=cpu"] = parse.Bound{Limit: 4}
				w.job.Beside = []limits.Job{beside(7, "physics", "normal", 3)}
			}, "",
		},
		{"the most of one job", func(w world) { w.user()["MaxTRESPerJob=cpu"] = parse.Bound{Limit: 3} }, "MaxTRESPerJob=cpu 3"},
		{"the most of one node", func(w world) { w.user()["MaxTRESPerNode=mem"] = parse.Bound{Limit: 199} }, "MaxTRESPerNode=mem 199"},
		{"a most of one job that stands at the account only", func(w world) { w.have.Associations[2].Limits["MaxTRESPerJob=cpu"] = parse.Bound{Limit: 3} }, ""},
		{"minutes that are spent", func(w world) { w.user()["GrpTRESMins=cpu"] = parse.Bound{Limit: 300, Used: 100} }, "GrpTRESMins=cpu 300"},
		{"minutes that last", func(w world) { w.user()["GrpTRESMins=cpu"] = parse.Bound{Limit: 300, Used: 60} }, ""},
		{"minutes of one job", func(w world) { w.user()["MaxTRESMinsPerJob=cpu"] = parse.Bound{Limit: 239} }, "MaxTRESMinsPerJob=cpu 239"},
		{"minutes that run", func(w world) { w.user()["GrpTRESRunMins=cpu"] = parse.Bound{Limit: 240, Used: 1} }, "GrpTRESRunMins=cpu 240"},
		{"a time limit above the most", func(w world) { w.user()["MaxWall"] = parse.Bound{Limit: 59} }, "MaxWall 59"},
		{"a wall time that is spent", func(w world) { w.have.Associations[2].Limits["GrpWall"] = parse.Bound{Limit: 100, Used: 41} }, "account physics has GrpWall 100"},
		{
			"minutes where the job has no time limit", func(w world) {
				w.size.Minutes = 0
				w.user()["GrpTRESMins=cpu"] = parse.Bound{Limit: 1 << 40}
			}, "the job would add minutes without end",
		},
		{
			"no time limit under a MaxWall, which Slurm gives it then", func(w world) {
				w.size.Minutes = 0
				w.user()["MaxWall"] = parse.Bound{Limit: 10}
				w.user()["GrpTRESMins=cpu"] = parse.Bound{Limit: 40}
			}, "",
		},
		{"the least of a QOS", func(w world) { w.have.QOS[0].Limits["MinTRESPerJob=cpu"] = parse.Bound{Limit: 5} }, "QOS normal asks for at least MinTRESPerJob=cpu 5, and the job would have 4"},
		{"the QOS's own limit", func(w world) { w.have.QOS[0].Limits["GrpTRES=cpu"] = parse.Bound{Limit: 9, Used: 6} }, "QOS normal has GrpTRES=cpu 9"},
		{
			"a limit of the QOS hides that of the association", func(w world) {
				w.have.QOS[0].Limits["GrpTRES=cpu"] = parse.Bound{Limit: 90}
				w.user()["GrpTRES=cpu"] = parse.Bound{Limit: 2}
				w.have.Associations[0].Limits["GrpTRES=cpu"] = parse.Bound{Limit: 2}
			}, "",
		},
		{
			"and hides no other", func(w world) {
				w.have.QOS[0].Limits["GrpTRES=cpu"] = parse.Bound{Limit: 90}
				w.user()["GrpTRES=mem"] = parse.Bound{Limit: 2}
			}, "GrpTRES=mem 2",
		},
		{
			"what one user may use of a QOS", func(w world) {
				w.have.QOS[0].Users["7"] = parse.Limits{"MaxTRESPerUser=cpu": {Limit: 4, Used: 1}}
			}, "user 7 in QOS normal has MaxTRESPerUser=cpu 4, of which other jobs use 1",
		},
		{
			"what one account may use of a QOS", func(w world) {
				w.have.QOS[0].Accounts["physics"] = parse.Limits{"MaxTRESPerAccount=mem": {Limit: 300, Used: 200}}
			}, "account physics in QOS normal has MaxTRESPerAccount=mem 300",
		},
		{
			"the QOS of the partition", func(w world) {
				w.job.Partitions = []string{"main", "other"}
				w.have.QOS[1].Limits["MaxTRESPerJob=cpu"] = parse.Bound{Limit: 3}
			}, "QOS part has MaxTRESPerJob=cpu 3",
		},
		{
			"an association for the partition counts instead of the general one", func(w world) {
				w.user()["GrpTRES=cpu"] = parse.Bound{Limit: 1}
				own := parse.Association{ID: 6, Account: "physics", User: "alice", UID: 7, Partition: "main", Limits: open()}
				w.have.Associations = append(w.have.Associations, own)
			}, "",
		},
		{"a limit of what the change does not touch", func(w world) { w.user()["GrpTRES=energy"] = parse.Bound{Limit: 1, Used: 9} }, ""},
		{"billing by CPUs", func(w world) { w.user()["GrpTRES=billing"] = parse.Bound{Limit: 3} }, "GrpTRES=billing 3"},
		{
			"billing by weights", func(w world) {
				w.user()["GrpTRES=billing"] = parse.Bound{Limit: 3}
				w.parts[0].Weights = "CPU=2"
			}, "unknown",
		},
		{
			"memory that no one asked for", func(w world) {
				w.user()["GrpTRES=mem"] = parse.Bound{Limit: 300}
				w.size.MiB = 0
			}, "unknown",
		},
		{"a user without an association", func(w world) { w.job.UID = 9; w.have.QOS[0].Users["9"] = nil }, "unknown"},
		{"a user of whom the QOS says nothing", func(w world) { delete(w.have.QOS[0].Users, "7") }, "unknown"},
		{"a QOS that is not there", func(w world) { w.job.QOS = "gone" }, "unknown"},
		{"a partition that is not there", func(w world) { w.job.Partitions = []string{"gone"} }, "unknown"},
		{"an account whose parent is not there", func(w world) { w.have.Associations[2].Parent = 99 }, "unknown"},
		{"an account that is above itself", func(w world) { w.have.Associations[1].Parent = 3 }, "unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			have, parts := cluster()
			job, size := alice(), limits.Size{Cores: 4, MiB: 200, Minutes: 60}
			c.change(world{&have, parts, &job, &size})
			err := limits.Check(have, parts, job, size)
			var exceeded *limits.Exceeded
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%v, want that it passes", err)
			case c.want == "unknown" && !errors.Is(err, limits.ErrUnknown):
				t.Errorf("%v, want %v", err, limits.ErrUnknown)
			case c.want != "" && c.want != "unknown" && (!errors.As(err, &exceeded) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestTheRecordedCluster(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../parse/testdata/scontrol-assoc-mgr.txt")
	if err != nil {
		t.Fatal(err)
	}
	have, err := parse.Associations(data)
	if err != nil {
		t.Fatal(err)
	}
	job := limits.Job{UID: 1001, Account: "alpha", QOS: "high", Partitions: []string{"main"}}
	parts := []parse.Partition{{Name: "main"}}
	// The QOS has GrpTRES cpu=5(3), one job 2, its user 3(3), the account of QOS 4(3).
	err = limits.Check(have, parts, job, limits.Size{Cores: 1, MiB: 100, Minutes: 10})
	if err == nil || !strings.Contains(err.Error(), "user 1001 in QOS high has MaxTRESPerUser=cpu 3, of which other jobs use 3") {
		t.Errorf("%v, want that the user's share is used up", err)
	}
	job.QOS = "normal"
	err = limits.Check(have, parts, job, limits.Size{Cores: 1, MiB: 100, Minutes: 10})
	if err == nil || !strings.Contains(err.Error(), "user alice in account alpha has GrpTRES=cpu 2, of which other jobs use 4") {
		t.Errorf("%v, want the limit of alice's association", err)
	}
}

// TestASmallerJobPassesWhereALargerOneDoes holds where nothing asks for a least.
func TestASmallerJobPassesWhereALargerOneDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		have, parts := cluster()
		bound := func(name string) parse.Bound {
			return parse.Bound{Limit: rapid.Uint64Range(0, 5000).Draw(t, name), Used: rapid.Uint64Range(0, 3000).Draw(t, name+" used")}
		}
		have.Associations[3].Limits["GrpTRES=cpu"], have.Associations[2].Limits["GrpTRES=mem"] = bound("cpu"), bound("mem")
		have.Associations[1].Limits["GrpTRESMins=cpu"] = bound("minutes")
		have.QOS[0].Limits["MaxTRESPerJob=cpu"] = parse.Bound{Limit: rapid.Uint64Range(0, 64).Draw(t, "job")}
		large := limits.Size{Cores: rapid.IntRange(1, 64).Draw(t, "cores"), MiB: rapid.Int64Range(1, 5000).Draw(t, "MiB"), Minutes: rapid.Int64Range(1, 5000).Draw(t, "time")}
		small := limits.Size{
			Cores: rapid.IntRange(1, large.Cores).Draw(t, "fewer"), MiB: rapid.Int64Range(1, large.MiB).Draw(t, "less"),
			Minutes: rapid.Int64Range(1, large.Minutes).Draw(t, "shorter"),
		}
		if limits.Check(have, parts, alice(), large) == nil && limits.Check(have, parts, alice(), small) != nil {
			t.Fatalf("%+v passes and %+v does not", large, small)
		}
	})
}
