package check

import (
	"fmt"
	"slices"
	"strings"
)

const (
	whereAccounts = "the accounts of Slurm (sacctmgr)"
	slurmdbd      = "accounting_storage/slurmdbd"
)

// accounting judges what keeps the past.
func (j *judge) accounting() {
	f := Finding{
		Name: "slurm.accounting", Where: j.conf(), Looked: j.said("AccountingStorageType"), Verdict: OK, Needed: []Mode{Site},
		Why:    "A job that slurmctld has forgotten is looked up there, `pitchpipe report --from-sacct` reads it, and only there an account gets the level Operator, which the broker of a site needs.",
		Change: []string{"AccountingStorageType=" + slurmdbd, "AccountingStorageHost=HOST-OF-SLURMDBD"}, Then: "set up slurmdbd first, then " + restartCtld,
	}
	if j.Slurm["AccountingStorageType"] != slurmdbd {
		f.Verdict = Missing
	}
	j.add(f)
	gather := Finding{
		Name: "slurm.job_acct_gather", Where: j.conf(), Looked: j.said("JobAcctGatherType"), Verdict: OK,
		Why:    "Without it the accounting knows no memory and no CPU seconds of past jobs, so that `pitchpipe report --from-sacct` cannot tell what tuning could bring.",
		Change: []string{"JobAcctGatherType=jobacct_gather/cgroup"}, Then: "restart slurmctld, and each slurmd while no job runs on its node",
	}
	if t := j.Slurm["JobAcctGatherType"]; t == "" || strings.HasSuffix(t, "/none") {
		gather.Verdict = Missing
	}
	j.add(gather)
}

// accounts judges who may do what.
func (j *judge) accounts() {
	if j.Mode == Site {
		j.ordinary()
	}
	if !j.Accounts.Asked {
		return // there is no accounting, which is told already
	}
	if j.Accounts.Denied != "" {
		j.add(Finding{
			Name: "accounts.denied", Where: whereAccounts, Looked: "they cannot be seen by " + j.Caller + ": " + j.Accounts.Denied, Verdict: Unknown,
			Why:    "What the accounts of the controller and of the broker may do stands there.",
			Change: []string{"run this as root"}, Needed: []Mode{Site},
		})
		return
	}
	if j.Mode == Site {
		j.level("accounts.controller", "the controller's", j.Controller, "None",
			"The controller has no rights of its own on purpose: what changes a job goes through the broker, which asks first whether it may.")
		j.level("accounts.broker", "the broker's", j.Broker.Account, "Operator",
			"Operator is the least level that may requeue and change the jobs of others; Administrator could change the cluster's accounts and is more than the broker needs.")
		return
	}
	enforced := j.has("AccountingStorageEnforce", "associations") || j.has("AccountingStorageEnforce", "limits") ||
		j.has("AccountingStorageEnforce", "safe") || j.has("AccountingStorageEnforce", "all")
	if !enforced {
		return
	}
	f := Finding{
		Name: "accounts.association", Where: whereAccounts, Looked: j.Controller + " belongs to an account", Verdict: OK, Needed: []Mode{Owner},
		Why:    "This cluster refuses the jobs of users who belong to no account.",
		Change: []string{fmt.Sprintf("sacctmgr -i add user %s account=ACCOUNT", j.Controller)},
	}
	if !slices.ContainsFunc(j.Accounts.Assocs, func(a Association) bool { return a.User == j.Controller }) {
		f.Verdict, f.Looked = Missing, j.Controller+" belongs to no account"
	}
	j.add(f)
}

// ordinary judges that the controller of a site is nobody special.
func (j *judge) ordinary() {
	admin, _, _ := strings.Cut(j.Slurm["SlurmUser"], "(")
	f := Finding{
		Name: "accounts.ordinary", Where: "the account of the controller", Looked: j.Controller + " is an ordinary account", Verdict: OK, Needed: []Mode{Site},
		Why: "The controller reads what users wrote, so it runs under an account that could do no harm with it: neither root nor Slurm's own.",
		Change: []string{
			"useradd --system --no-create-home --shell /usr/sbin/nologin pitchpipe",
			"systemctl enable --now pitchpipe-site, and not pitchpipe-controller: the unit pitchpipe-site runs the controller under that account",
			"pitchpipe slurm check --user pitchpipe, where the controller runs under that account already",
		},
	}
	switch {
	case j.Controller == "root" || j.Controller == admin:
		f.Verdict, f.Looked = Wrong, "the controller would run under "+j.Controller
	case j.Here.UID == "":
		f.Verdict, f.Looked = Missing, "there is no account "+j.Controller+" on this machine"
		f.Change = []string{
			"useradd --system --no-create-home --shell /usr/sbin/nologin " + j.Controller + ", with the same number on the machines of slurmctld and of the nodes",
			"or run this where the controller runs",
		}
	}
	j.add(f)
}

// level judges the administrator level of an account.
func (j *judge) level(name, whose, account, want, why string) {
	f := Finding{Name: name, Where: whereAccounts, Verdict: OK, Needed: []Mode{Site}, Why: why}
	if account == "" {
		f.Verdict, f.Looked = Unknown, "nobody knows "+whose+" account: its socket is not there"
		f.Change = []string{"start the broker, or tell this check of its account: --broker-user NAME"}
		j.add(f)
		return
	}
	i := slices.IndexFunc(j.Accounts.Users, func(u User) bool { return u.Name == account })
	have := "None"
	if i >= 0 {
		have = j.Accounts.Users[i].Level
	}
	f.Looked = fmt.Sprintf("%s account %s has AdminLevel %s", whose, account, have)
	f.Change = []string{fmt.Sprintf("sacctmgr -i modify user where name=%s set adminlevel=%s", account, want)}
	if i < 0 {
		f.Looked = fmt.Sprintf("%s account %s is not known there", whose, account)
		f.Change = []string{fmt.Sprintf("sacctmgr -i add user %s account=ACCOUNT adminlevel=%s", account, want)}
	}
	switch {
	case have == want: // an account that is not known has no level
	case i < 0 && j.has("PrivateData", "users") && j.Caller != "root":
		f.Verdict, f.Looked, f.Change = Unknown, "the level of "+account+" cannot be seen by "+j.Caller+" (PrivateData has users)", []string{"run this as root"}
	case i < 0:
		f.Verdict = Missing
	default:
		f.Verdict = Wrong
	}
	j.add(f)
}
