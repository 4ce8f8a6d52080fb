import{a as o}from"./chunk-CDKAEKHJ.js";import"./chunk-Y6MLHL7T.js";import"./chunk-YGW5J2DS.js";import"./chunk-BN2J5NV2.js";export{o as Privacy};
