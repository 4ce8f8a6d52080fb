import{a as o}from"./chunk-ANDGHRHP.js";import"./chunk-ZPI3YXJB.js";import"./chunk-SCOGSAOC.js";import"./chunk-KVT23WIS.js";export{o as Privacy};
