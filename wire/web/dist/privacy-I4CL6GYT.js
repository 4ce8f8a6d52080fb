import{a as o}from"./chunk-ZR7ZEEVR.js";import"./chunk-4GST2CSS.js";import"./chunk-J2CGV2ZJ.js";import"./chunk-WKYJCQHX.js";export{o as Privacy};
