import{a as o}from"./chunk-XGHTBSYP.js";import"./chunk-VWXDAQYC.js";import"./chunk-AGF42KRU.js";export{o as Privacy};
