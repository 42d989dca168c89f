// What the view of a reproduction reads of `pinwise.reproduction/1`.

type Maybe<T> = T | null | undefined;

export interface Claim {
  claim?: string;
  reported?: Maybe<string>;
  measured?: Maybe<string>;
  verdict?: string;
  why?: Maybe<string>;
}

export interface FieldReport {
  name?: string;
  machine?: string;
  assumed?: string[];
  experiments?: { name?: string; question?: string; claims?: Claim[] }[];
}

export interface ReproductionRecord {
  schema: string;
  pinwise_version?: string;
  host?: string;
  simulated?: boolean;
  seed?: Maybe<number>;
  reports?: FieldReport[];
  counts?: Maybe<Record<string, number>>;
  interrupted?: boolean;
  elapsed_s?: Maybe<number>;
}
