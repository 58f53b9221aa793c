package check

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"pitchpipe/driver/slurm/parse"
	"pitchpipe/scripts"
	"pitchpipe/test/fixtures"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// recorded is an output of Slurm 22.05.8, with other names.
func recorded(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func shippedFile(t testing.TB, name string) string {
	t.Helper()
	files, err := scripts.Slurm()
	if err != nil {
		t.Fatal(err)
	}
	text, err := fs.ReadFile(files, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// installed is a file that is there as this version ships it.
func installed(t testing.TB, path string, mode fs.FileMode) File {
	t.Helper()
	f := plain(path, "root", mode, shippedFile(t, filepath.Base(path)))
	f.Shipped = f.Text
	return f
}

func plain(path, owner string, mode fs.FileMode, text string) File {
	return File{Path: path, Seen: Present, Owner: owner, Mode: mode, Open: true, FS: "ext4", Text: text}
}

// bare is a cluster where nothing was installed, seen by a user who has their own
// controller.
func bare(t testing.TB) Facts {
	t.Helper()
	skew := time.Duration(0)
	return Facts{
		Mode: Owner, Caller: "ada", Controller: "ada",
		Config: Config{
			File: "/home/ada/.config/pitchpipe/controller.yaml", Driver: "slurm", Mode: Owner, Settings: "/home/ada/.local/state/pitchpipe/slurm-env",
			State: "/home/ada/.local/state/pitchpipe", Exporter: "/run/pitchpipe/exporter.sock", Policy: Policy{Read: true},
		},
		Here:       Here{Home: "/home/ada", UID: "1001"},
		Slurm:      parse.Config(recorded(t, "bare.config.txt")),
		Skew:       &skew,
		Nodes:      []Node{{Name: "n1", Host: "n1"}, {Name: "n2", Host: "n2"}},
		Partitions: []parse.Partition{{Name: "main"}},
		Jobs:       &Jobs{Seen: 7},
		Submit:     File{Path: "/etc/slurm/job_submit.lua", Seen: Absent},
	}
}

// ready is a cluster of one node with all that a site can install, seen on it.
func ready(t testing.TB) Facts {
	t.Helper()
	f := bare(t)
	f.Slurm = parse.Config(recorded(t, "site.config.txt"))
	f.Here.Ctld, f.Here.Nodes = true, []string{"n1"}
	f.Nodes = []Node{{Name: "n1", Host: "n1", Exporter: Exporter{Address: "/run/pitchpipe/exporter.sock", Answer: Present, Steps: "supported", Energy: "rapl"}}}
	f.Config.TaskProlog, f.Config.Plugin, f.Config.Policy = true, true, Policy{Read: true, File: "/etc/pitchpipe/site.yaml", Apply: true}
	f.Submit = plain("/etc/slurm/job_submit.lua", "root", 0o644, shippedFile(t, "job_submit.lua"))
	for _, name := range []string{"pitchpipe.lua", "pitchpipe_keys.lua"} {
		f.Modules = append(f.Modules, installed(t, "/etc/slurm/pitchpipe/"+name, 0o644))
	}
	f.Prolog = installed(t, "/etc/slurm/pitchpipe/task_prolog", 0o755)
	f.PrologConf = plain("/etc/pitchpipe/task_prolog.conf", "root", 0o644,
		"site_dir=/shared/pitchpipe\nsite_user=pitchpipe\nowner_dir=.local/state/pitchpipe/slurm-env\nexporter=/run/pitchpipe/exporter.sock\nlistener=/usr/bin/pitchpipe\n")
	f.Listener = plain("/usr/bin/pitchpipe", "root", 0o755, "")
	f.Settings = plain("/home/ada/.local/state/pitchpipe/slurm-env", "ada", 0o755|fs.ModeDir, "")
	f.Accounts = Accounts{
		Asked: true, Levels: map[string]string{"pitchpipe": "None", "pitchpipe-broker": "Operator", "ada": "None"},
		Assocs: []Association{{Account: "physics", User: "ada"}},
	}
	f.Options = plain("/etc/default/pitchpipe-exporter", "root", 0o644, "# flags\nOPTIONS=\"--log.level=info --api.readers=pitchpipe,1234\"\n")
	return f
}

// site is the same, seen by root and for a site.
func site(t testing.TB) Facts {
	t.Helper()
	f := ready(t)
	f.Mode, f.Caller, f.Controller, f.Config.File = Site, "root", "pitchpipe", "/etc/pitchpipe/controller.yaml"
	f.Config.Mode = Site
	f.Config.Settings, f.Config.State = "/shared/pitchpipe", "/var/lib/pitchpipe"
	f.Here.Home, f.Here.UID = "/var/lib/pitchpipe", "990"
	f.Settings = plain("/shared/pitchpipe", "pitchpipe", 0o755|fs.ModeDir, "")
	f.Settings.FS = "nfs"
	f.Jobs = &Jobs{Seen: 7, BySite: 7, ByController: true}
	f.Broker = Broker{
		Socket: plain("/run/pitchpipe-broker/broker.sock", "pitchpipe-broker", fs.ModeSocket|0o666, ""), Account: "pitchpipe-broker", Answer: Present,
	}
	f.Proof = &Proof{
		Job: "12", Bad: `pitchpipe: line 2, column 7: unknown key "mod"`, Comment: "pitchpipe:1:{}", Variable: Present, Measured: Present,
	}
	return f
}

// wrong is a site where everything that can be wrong is.
func wrong(t testing.TB) Facts {
	t.Helper()
	f := site(t)
	f.Slurm = parse.Config(recorded(t, "wrong.config.txt"))
	skew := 42 * time.Second
	f.Skew, f.Controller = &skew, "slurm"
	f.Nodes = append(f.Nodes, Node{Name: "n2", Host: "n2"})
	f.Nodes[0].Steps, f.Nodes[0].Energy = "denied: needs root or CAP_SYS_PTRACE", ""
	f.Partitions = []parse.Partition{{Name: "main", Exclusive: true}, {Name: "secret", Hidden: true}}
	f.Config = Config{
		File: "/etc/pitchpipe/controller.yaml", Driver: "local", Plugin: true, Settings: "/elsewhere", Partitions: []string{"man"},
		Exporter: "/run/pitchpipe/exporter.sock", Policy: Policy{Read: true, File: "/etc/pitchpipe/site.yaml", Fault: "/etc/pitchpipe/site.yaml:2:3: unknown key"},
	}
	f.Jobs.Seen, f.Jobs.BySite = 95, 3
	f.Submit.Text = strings.Replace(f.Submit.Text, `= "reject"`, `= "refuse"`, 1)
	f.Modules[0].Text += "\n"
	f.Prolog.Text += "# changed\n"
	f.Prolog.Mode = 0o775
	f.PrologConf.Text = "site_dir=/shared/pitchpipe\nsite_user=slurm\nexporter=/run/pitchpipe/exporter.sock\nlistener=/usr/bin/pitchpipe\n"
	f.Listener.Mode = 0o777
	f.Settings.Mode, f.Settings.FS = 0o777|fs.ModeDir, "ext4"
	f.Accounts.Levels = map[string]string{"slurm": "Administrator"}
	f.Broker.Answer, f.Broker.Text = Closed, "only the site's controller may ask"
	f.Options.Text = "OPTIONS=\"\"\n"
	f.Proof = &Proof{
		Accepted: true, Job: "12", Variable: Absent, Measured: Absent,
	}
	return f
}

// closed is a site seen by an ordinary user from a machine that is not the
// controller's and not a node.
func closed(t testing.TB) Facts {
	t.Helper()
	f := site(t)
	f.Caller, f.Here, f.Config.Policy = "ada", Here{UID: "990"}, Policy{}
	f.Submit = File{Path: "/etc/slurm/job_submit.lua", Seen: Absent}
	f.Modules = nil
	f.Prolog = File{Path: "/etc/slurm/pitchpipe/task_prolog", Seen: Absent}
	f.PrologConf = File{Path: "/etc/pitchpipe/task_prolog.conf", Seen: Closed}
	f.Settings = File{}
	f.Accounts = Accounts{Asked: true, Denied: "slurm_persist_conn_open: access denied"}
	f.Broker = Broker{Socket: File{Path: "/run/pitchpipe-broker/broker.sock", Seen: Closed}}
	f.Options = File{}
	f.Proof = &Proof{Bad: "the partition is down", Job: "12", Comment: "pitchpipe:1:-", Unstarted: "job 12 was PENDING (Resources) for 1m30s and was cancelled"}
	return f
}

func TestAReportSaysWhatAnAdministratorChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		facts  func(testing.TB) Facts
		passed bool
	}{
		{"a bare cluster, seen by an owner", bare, false},
		{"a cluster that is ready for owners", ready, true},
		{"a cluster that is ready for a site", site, true},
		{"a site where all is wrong", wrong, false},
		{"a site, seen by one who may see nothing", closed, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := Judge(c.facts(t))
			if r.Passed != c.passed {
				t.Errorf("passed %v, want %v", r.Passed, c.passed)
			}
			text, err := json.MarshalIndent(r, "", "\t")
			if err != nil {
				t.Fatal(err)
			}
			fixtures.Golden(t, *update, filepath.Join("testdata", strings.NewReplacer(" ", "-", ",", "").Replace(c.name)+".json"), string(text)+"\n")
		})
	}
}

// TestEachFaultHasItsFinding takes one thing away from a cluster that
// is ready.
func TestEachFaultHasItsFinding(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		facts   func(testing.TB) Facts
		change  func(*Facts)
		finding string
		verdict Verdict
		fails   bool
	}{
		{"no TaskProlog, and the controller counts on it", ready, func(f *Facts) { f.Slurm["TaskProlog"] = "" }, "slurm.task_prolog", Missing, true},
		{"a TaskProlog of the site's own", ready, func(f *Facts) { f.Prolog.Text = "#!/bin/sh\necho hello\n" }, "prolog.script", Missing, true},
		{"a TaskProlog that calls ours", ready, func(f *Facts) { f.Prolog.Text = "#!/bin/sh\n/etc/slurm/pitchpipe/task_prolog\n" }, "prolog.script", OK, false},
		{"a TaskProlog that names ours in a comment", ready, func(f *Facts) { f.Prolog.Text = "#!/bin/sh\n# not /etc/slurm/pitchpipe/task_prolog\n" }, "prolog.script", Missing, true},
		{"another line conf= is the site's choice", ready, func(f *Facts) {
			f.Prolog.Text = strings.Replace(f.Prolog.Text, "\nconf=/etc/", "\nconf=/opt/", 1)
		}, "prolog.script", OK, false},
		{"a task prolog that everybody may write", site, func(f *Facts) { f.Prolog.Mode = 0o757 }, "prolog.permissions", Wrong, true},
		{"a task prolog that not everybody may run", site, func(f *Facts) { f.Prolog.Mode = 0o750 }, "prolog.permissions", Wrong, true},
		{"a line of the plugin's file that is a comment", site, func(f *Facts) {
			f.Submit.Text = "-- require \"pitchpipe\"\n-- pitchpipe.submit(job_desc)\n"
		}, "plugin.job_submit", Missing, true},
		{"no job_submit.lua beside a slurm.conf that wants one", ready, func(f *Facts) { f.Submit.Seen = Absent }, "plugin.job_submit", Missing, true},
		{"a file of the plugin that is not there", site, func(f *Facts) { f.Modules[0].Seen = Absent }, "plugin.modules", Missing, true},
		{"a file of the plugin that slurmctld cannot read", site, func(f *Facts) { f.Modules[0].Mode = 0o600 }, "plugin.modules", Wrong, true},
		{"jobs that others do not see", site, func(f *Facts) { f.Slurm["PrivateData"] = "accounts,jobs" }, "slurm.private_data", Wrong, true},
		{"jobs that others do not see, for an owner", ready, func(f *Facts) { f.Slurm["PrivateData"] = "jobs" }, "slurm.private_data", Wrong, false},
		{"a controller that sees few of the jobs", site, func(f *Facts) { f.Jobs = &Jobs{Seen: 90, BySite: 2, ByController: true} }, "slurm.jobs_seen", Wrong, true},
		{"a range of statuses", ready, func(f *Facts) { f.Slurm["RequeueExitHold"] = "3,80-90" }, "slurm.requeue_exit", OK, false},
		{"statuses without that of a checkpoint", ready, func(f *Facts) { f.Slurm["RequeueExitHold"] = "86-90,x-99,85x" }, "slurm.requeue_exit", Missing, false},
		{"a controller under an account that is not there", site, func(f *Facts) { f.Here.UID = "" }, "accounts.ordinary", Missing, true},
		{"a controller with a level", site, func(f *Facts) { f.Accounts.Levels["pitchpipe"] = "Operator" }, "accounts.controller", Wrong, true},
		{"a broker without a level", site, func(f *Facts) { f.Accounts.Levels["pitchpipe-broker"] = "None" }, "accounts.broker", Wrong, true},
		{"a broker that the accounting does not know", site, func(f *Facts) { f.Broker.Account = "stranger" }, "accounts.broker", Missing, true},
		{"a broker that this user may not see there", site, func(f *Facts) {
			f.Broker.Account, f.Caller, f.Slurm["PrivateData"] = "stranger", "ada", "users"
		}, "accounts.broker", Unknown, false},
		{"an owner without an account", ready, func(f *Facts) {
			f.Accounts.Assocs, f.Slurm["AccountingStorageEnforce"] = nil, "associations"
		}, "accounts.association", Missing, true},
		{"a folder of another account", site, func(f *Facts) { f.Settings.Owner = "ada" }, "settings.folder", Wrong, true},
		{"a folder that the other nodes do not have", site, func(f *Facts) {
			f.Settings.FS, f.Nodes = "xfs", append(f.Nodes, Node{Name: "n2", Host: "n2", Exporter: f.Nodes[0].Exporter})
		}, "settings.folder", Wrong, true},
		{"settings that the prolog does not read", site, func(f *Facts) { f.Config.Settings = "/elsewhere" }, "controller.settings", Wrong, true},
		{"a prolog that believes another account", site, func(f *Facts) {
			f.PrologConf.Text = strings.Replace(f.PrologConf.Text, "=pitchpipe\n", "=ada\n", 1)
		}, "prolog.conf", Wrong, true},
		{"no listener", site, func(f *Facts) { f.PrologConf.Text = strings.Replace(f.PrologConf.Text, "listener=", "#", 1) }, "prolog.listener", Missing, true},
		{"a listener that others may write", site, func(f *Facts) { f.Listener.Mode = 0o777 }, "prolog.listener", Wrong, true},
		{"a controller of the other mode", site, func(f *Facts) { f.Config.Mode = Owner }, "controller.mode", Wrong, true},
		{"no plugin, where the broker believes scripts", site, func(f *Facts) {
			f.Config.Plugin, f.Config.Scripts, f.Slurm["JobSubmitPlugins"] = false, true, ""
		}, "slurm.job_submit_plugins", Missing, false},
		{"no broker", site, func(f *Facts) { f.Broker.Socket.Seen = Absent }, "broker.socket", Missing, true},
		{"no policy", site, func(f *Facts) { f.Config.Policy = Policy{Read: true} }, "policy.mode", Missing, false},
		{"a policy that lets no stanza apply", ready, func(f *Facts) { f.Config.Policy.Apply = false }, "policy.mode", Missing, false},
		{"a policy that cannot be used", site, func(f *Facts) { f.Config.Policy.Fault = "line 2" }, "policy.mode", Wrong, true},
		{"a broker that does not answer", site, func(f *Facts) { f.Broker.Answer = Absent }, "broker.socket", Wrong, true},
		{"a broker that denies an ordinary user", site, func(f *Facts) { f.Broker.Answer, f.Caller = Closed, "ada" }, "broker.socket", OK, false},
		{"a node without an exporter", ready, func(f *Facts) { f.Nodes[0].Answer = Absent }, "exporter.answers", Missing, true},
		{"a node that is down", ready, func(f *Facts) {
			f.Nodes[0].Answer, f.Nodes[0].State = Absent, "down*"
		}, "exporter.answers", Unknown, false},
		{"an exporter that finds no job without cgroups", ready, func(f *Facts) {
			f.Slurm["ProctrackType"], f.Nodes[0].Steps = "proctrack/linuxproc", "denied"
		}, "exporter.finds_jobs", Wrong, true},
		{"an exporter that shows the controller nothing", site, func(f *Facts) { f.Options.Text = "OPTIONS=\"--api.readers ada\"\n" }, "exporter.readers", Missing, true},
		{"an exporter that has the controller's number", site, func(f *Facts) { f.Options.Text = "OPTIONS='--api.readers 990'\n" }, "exporter.readers", OK, false},
		{"a good job that sbatch refuses", site, func(f *Facts) { f.Proof = &Proof{Failed: "Invalid account"} }, "try.submitted", Wrong, true},
		{"a warning instead of a refusal", site, func(f *Facts) { f.Proof.Accepted = true }, "try.refused", OK, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := c.facts(t)
			c.change(&f)
			r := Judge(f)
			i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Name == c.finding })
			if i < 0 {
				t.Fatalf("no finding %s in %v", c.finding, r.Findings)
			}
			got := r.Findings[i]
			if got.Verdict != c.verdict || got.Fails(f.Mode) != c.fails || r.Passed == c.fails {
				t.Errorf("%+v, passed %v; want %s, fails %v", got, r.Passed, c.verdict, c.fails)
			}
		})
	}
}

// TestTheFolderThatIsProposedIsOneThatJobsReach: none below the controller's state is.
func TestTheFolderThatIsProposedIsOneThatJobsReach(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings, conf, want string
	}{
		"where neither file names one":          {"/var/lib/pitchpipe/slurm-env", "", "site_dir=/srv/pitchpipe/settings"},
		"where the controller's file names one": {"/shared/pitchpipe", "", "site_dir=/shared/pitchpipe"},
		"where the task prolog's names one":     {"/var/lib/pitchpipe/slurm-env", "site_dir=/nfs/settings\n", "site_dir=/nfs/settings"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := site(t)
			f.Config.Settings, f.PrologConf.Text = c.settings, c.conf
			r := Judge(f)
			i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Name == "prolog.conf" })
			if i < 0 || r.Findings[i].Verdict != Missing || !slices.Contains(r.Findings[i].Change, c.want) {
				t.Errorf("%+v, want the line %s", r.Findings, c.want)
			}
		})
	}
}

// TestNodesThatAnswerAlikeAreOneFinding: a cluster has thousands.
func TestNodesThatAnswerAlikeAreOneFinding(t *testing.T) {
	t.Parallel()
	f := ready(t)
	f.Nodes = nil
	for i := range 1000 {
		name := fmt.Sprintf("node%04d", i)
		e := Exporter{Address: "https://" + name + ":9836", Answer: Present, Steps: "supported", Energy: "rapl"}
		if i == 500 || i == 700 {
			e = Exporter{Address: e.Address, Answer: Absent, Text: "dial " + name + ": no route to host"}
		}
		f.Nodes = append(f.Nodes, Node{Name: name, Host: name, Exporter: e})
	}
	r := Judge(f)
	var got []string
	for _, f := range r.Findings {
		if f.Name == "exporter.answers" {
			got = append(got, string(f.Verdict)+" | "+f.Where+" | "+f.Looked)
		}
	}
	want := []string{
		"ok | nodes node0000, node0001, node0002, node0003, node0004, node0005, node0006, node0007 and 990 more: /etc/default/pitchpipe-exporter | its exporter answers at https://{node}:9836",
		"missing | nodes node0500, node0700: /etc/default/pitchpipe-exporter | no exporter answers at https://{node}:9836: dial {node}: no route to host",
	}
	if diff := cmp.Diff(want, got); diff != "" || r.Passed {
		t.Errorf("passed %v %s", r.Passed, diff)
	}
}

// TestWhatIsNotFineSaysWhyAndWhatToDo holds for all that the recorded clusters show.
func TestWhatIsNotFineSaysWhyAndWhatToDo(t *testing.T) {
	t.Parallel()
	for _, facts := range []func(testing.TB) Facts{bare, ready, site, wrong, closed} {
		for _, f := range Judge(facts(t)).Findings {
			switch {
			case f.Name == "" || f.Where == "" || f.Looked == "":
				t.Errorf("%+v: has no name, no place or nothing that was looked at", f)
			case f.Verdict == OK && len(f.Change) > 0:
				t.Errorf("%s is fine and yet wants a change", f.Name)
			case f.Verdict == OK:
			case !strings.HasSuffix(f.Why, "."), strings.Count(f.Why, ". ") > 0:
				t.Errorf("%s: why is no single sentence: %q", f.Name, f.Why)
			case f.Verdict != Unknown && len(f.Change) == 0:
				t.Errorf("%s is %s and says nothing to change", f.Name, f.Verdict)
			}
		}
	}
}

// TestNoFactsAreNoFaults: what is not known is never told as wrong in what is read
// from files, and nothing panics on whatever facts there are.
func TestNoFactsAreNoFaults(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := rapid.SampledFrom([]func(testing.TB) Facts{bare, ready, site, wrong, closed}).Draw(rt, "facts")(t)
		f.Mode = rapid.SampledFrom([]Mode{Owner, Site}).Draw(rt, "mode")
		f.Slurm["TaskProlog"], f.Slurm["JobSubmitPlugins"] = "/p", "lua"
		seen := rapid.SampledFrom([]Seen{NotLooked, Closed})
		for _, file := range []*File{&f.Submit, &f.Prolog, &f.PrologConf, &f.Settings} {
			*file = File{Path: file.Path, Seen: seen.Draw(rt, "seen")}
		}
		for _, key := range []string{
			"SLURM_CONF", "SLURM_VERSION", "ClusterName", "MinJobAge", "MaxJobCount", "SchedulerParameters", "RequeueExit", "RequeueExitHold", "PrivateData",
			"ProctrackType", "TaskPlugin", "SlurmUser", "SlurmctldHost[0]", "AccountingStorageType", "AccountingStorageEnforce", "JobAcctGatherType",
		} {
			f.Slurm[key] = rapid.OneOf(rapid.Just(f.Slurm[key]), rapid.Just(""), rapid.String()).Draw(rt, key)
		}
		r := Judge(f)
		for _, name := range []string{"plugin.job_submit", "plugin.modules", "prolog.script", "prolog.conf", "settings.folder"} {
			for _, got := range r.Findings {
				if got.Name == name && got.Verdict != Unknown {
					rt.Fatalf("%+v, and no look was made", got)
				}
			}
		}
	})
}

// TestFindingsAreWellFormed: a misspelled key of findings.yaml would be a text that is missing.
func TestFindingsAreWellFormed(t *testing.T) {
	t.Parallel()
	var rules []rule
	strict := yaml.NewDecoder(bytes.NewReader(findings))
	strict.KnownFields(true)
	if err := strict.Decode(&rules); err != nil || len(rules) < 40 {
		t.Errorf("%d findings, %v", len(rules), err)
	}
	for _, facts := range []func(testing.TB) Facts{bare, ready, site, wrong, closed} {
		j := &judge{Facts: facts(t)}
		for _, r := range rules {
			conditions := []string{r.If}
			for _, c := range r.Cases {
				all := slices.DeleteFunc([]string{c.OK, c.Missing, c.Wrong, c.Unknown}, func(s string) bool { return s == "" })
				if len(all) != 1 || c.Name+c.Where+c.If+c.Each != "" {
					t.Errorf("%s has the case %+v, want one condition, and texts", r.Name, c)
				}
				conditions = append(conditions, all...)
			}
			for _, j.It = range j.each(r.Each) {
				for _, condition := range conditions {
					if got := j.fill("{if " + condition + "}y{end}"); condition != "" && got != "y" && got != "" && !strings.Contains(got, "nil pointer") {
						t.Errorf("%s: %s", r.Name, got)
					}
				}
			}
		}
	}
}
