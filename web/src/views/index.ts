// Which view draws which record: one line per schema.

import type { SCHEMAS } from '../records';
import type { AnyRecord } from '../source';
import { schemaOf } from '../schema';
import type { Page, View } from '../view';
import { benchView } from './bench/view';
import { comparisonView } from './comparison/view';
import { diffView } from './diff/view';
import { doctorView } from './doctor/view';
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
import { topView } from './top/view';
import { traceView } from './trace/view';

type Draw = (record: AnyRecord, page: Page) => View;

/** By the schema's name. A kind that is missing here does not compile. */
const VIEWS: Readonly<Record<keyof typeof SCHEMAS, Draw>> = {
  applied: plainView,
  bench: benchView,
  comparison: comparisonView,
  diff: diffView,
  doctor: doctorView,
  'fleet-diff': fleetDiffView,
  'fleet-node': fleetNodeView,
  'fleet-report': fleetReportView,
  'fleet-status': plainView,
  fleet: fleetPlanView,
  gate: gateView,
  jitter: jitterView,
  kernel: plainView,
  placements: plainView,
  prediction: plainView,
  'profile-diff': profileDiffView,
  profile: profileView,
  replay: plainView,
  reproduction: reproductionView,
  'rule-change': plainView,
  rules: plainView,
  search: searchView,
  'spin-advice': spinAdviceView,
  'spin-attach': spinAttachView,
  'spin-pause': spinPauseView,
  'spin-predict': spinPredictView,
  'spin-replay': spinReplayView,
  'spin-scan': spinScanView,
  top: topView,
  'topology-diff': plainView,
  topology: machineView,
  trace: traceView,
};

/** The view of a record; refuses newer and damaged ones with a PageError. */
export function viewOf(record: AnyRecord, page: Page): View {
  const views: Readonly<Record<string, Draw>> = VIEWS;
  return (views[schemaOf(record)] ?? plainView)(record, page);
}
