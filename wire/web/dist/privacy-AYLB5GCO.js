import{a as o}from"./chunk-MZL2ZQ5L.js";import"./chunk-DV5QANLE.js";import"./chunk-DYHP2VQW.js";export{o as Privacy};
