// Which view draws which record: one line per schema.

import type { AnyRecord } from '../source';
import { schemaOf } from '../schema';
import type { Page, View } from '../view';
import { benchView } from './bench/view';
import { comparisonView } from './comparison/view';
import { diffView } from './diff/view';
import { fleetDiffView } from './fleet-diff/view';
import { fleetNodeView } from './fleet-node/view';
import { fleetPlanView } from './fleet-plan/view';
import { fleetReportView } from './fleet-report/view';
import { gateView } from './gate/view';
import { jitterView } from './jitter/view';
import { machineView } from './machine/view';
import { plainView } from './plain/view';
import { profileDiffView, profileView } from './profile/view';
import { reproductionView } from './reproduction/view';
import { searchView } from './search/view';
import { spinAdviceView, spinScanView } from './spin/advice';
import { spinAttachView } from './spin/attach';
import { spinPauseView } from './spin/pause';
import { spinPredictView } from './spin/predict';
import { spinReplayView } from './spin/replay';
import { traceView } from './trace/view';

type Draw = (record: AnyRecord, page: Page) => View;

/** By the schema's name; what is missing here is shown as its fields. */
const VIEWS: Readonly<Record<string, Draw>> = {
  bench: benchView,
  comparison: comparisonView,
  diff: diffView,
  fleet: fleetPlanView,
  'fleet-diff': fleetDiffView,
  'fleet-node': fleetNodeView,
  'fleet-report': fleetReportView,
  gate: gateView,
  jitter: jitterView,
  'profile-diff': profileDiffView,
  profile: profileView,
  reproduction: reproductionView,
  search: searchView,
  'spin-advice': spinAdviceView,
  'spin-attach': spinAttachView,
  'spin-pause': spinPauseView,
  'spin-predict': spinPredictView,
  'spin-replay': spinReplayView,
  'spin-scan': spinScanView,
  topology: machineView,
  trace: traceView,
};

/** The view of a record; refuses newer and damaged ones with a PageError. */
export function viewOf(record: AnyRecord, page: Page): View {
  return (VIEWS[schemaOf(record)] ?? plainView)(record, page);
}
