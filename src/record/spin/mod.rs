//! What the spin-wait laboratory finds.

mod advice;
mod attach;
mod pause;
mod predict;
mod replay;
mod scan;

pub use advice::{AdviceRecord, SPIN_ADVICE_SCHEMA, SpinAdviceRecord};
pub use attach::{
    SPIN_ATTACH_SCHEMA, SpinAttachRecord, SpinCaller, SpinMatch, SpinPlace, SpinShares, SpinThread,
};
pub use pause::{
    ChipRecord, CpuPauseRecord, HintCostRecord, LevelRecord, PauseCheckRecord, SPIN_PAUSE_SCHEMA,
    SpinPauseRecord, TooLongRecord,
};
pub use predict::{
    CliffsRecord, MoveRecord, PredictionRecord, ProcessorRecord, SPIN_PREDICT_SCHEMA,
    SpinPredictRecord, TunableRecord,
};
pub use replay::{
    ContentionCell, ReplayCell, ReplayHint, ReplayMeasured, ReplayPrediction, ReplayedAlgorithm,
    SPIN_REPLAY_SCHEMA, SpinReplayRecord,
};
pub use scan::{
    GapOnChip, MatchedAlgorithm, OuterLoop, SPIN_SCAN_SCHEMA, ScanChip, ScannedBinary, ScannedLoop,
    SkippedFile, SpinScan,
};
