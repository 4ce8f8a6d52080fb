import{a as o}from"./chunk-5THFZXI3.js";import"./chunk-VRN3DNFL.js";import"./chunk-NBMTKBVB.js";export{o as Privacy};
