package check

import "cmp"

// policyPlace is where a controller looks for the site's policy where it was told of no
// other file.
const policyPlace = "/etc/pitchpipe/site.yaml"

// policy judges what the site lets stanzas do. That nothing is changed may be what the
// site wants, so it is no more than advice.
func (j *judge) policy() {
	p := j.Config.Policy
	if !p.Read {
		return
	}
	f := Finding{
		Name: "policy.mode", Where: cmp.Or(p.File, policyPlace), Looked: "it lets stanzas apply", Verdict: OK,
		Why:    "Where the policy does not let stanzas apply, jobs with mode=apply are profiled and advised like all others, and nothing of them is changed.",
		Change: []string{"default:", "  max_mode: apply"}, Then: "or the same in a block of single partitions or accounts; " + restartController,
	}
	switch {
	case p.Fault != "":
		f.Verdict, f.Looked, f.Needed = Wrong, "it cannot be used: "+p.Fault, both()
		f.Why, f.Change = "With a policy that it cannot use the controller does not start.", []string{"mend what is said above"}
		f.Then = restartController
	case p.Apply:
	case p.File == "":
		f.Verdict, f.Looked = Missing, "there is no policy, so that stanzas only get advice"
		if j.Mode == Owner && j.Caller != "root" {
			f.Then = restartController + "; a file of your own is named by the line site: /PATH of " + j.yaml()
		}
	default:
		f.Verdict, f.Looked = Missing, "max_mode is apply neither by default nor in a partition or account, or dry_run is set: stanzas only get advice"
	}
	j.add(f)
}
