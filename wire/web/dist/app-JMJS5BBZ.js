import{Wb as r}from"./chunk-BN2J5NV2.js";r();
