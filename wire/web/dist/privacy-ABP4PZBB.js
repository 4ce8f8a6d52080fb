import{a as o}from"./chunk-ISEISPVF.js";import"./chunk-M4PESRK7.js";import"./chunk-YGMU7ZFH.js";export{o as Privacy};
